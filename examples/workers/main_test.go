package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/exampletest"
)

func TestRun(t *testing.T) {
	exampletest.Run(t, run,
		`10 calls, at most [1-3] at a time`,
	)
}
