package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/exampletest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestRun(t *testing.T) {
	exampletest.RunOn(t, 5, run,
		`all up: granted by [345] of 5`,
		`two stopped: granted by 3 of 5, with a greater token: true`,
		`three stopped: the holder is told after .*: true`,
		`nobody is granted it now: true`,
		`one is back, with its data: granted by 3 of 5`,
	)
}
