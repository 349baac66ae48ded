package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/exampletest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestRun(t *testing.T) {
	exampletest.RunOn(t, 3, run,
		`booked all three`,
		`another booker: .*held by another`,
		`not booked`,
		`the driver is free for others`,
		`back: booked`,
	)
}
