package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/exampletest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestRun(t *testing.T) {
	exampletest.Run(t, run,
		`without a lock: 100 units, (10[1-9]|1[1-6][0-9]) sold`, // each of the 160 may find one
		`with 16 stripes: 100 units, 100 sold`,
	)
}
