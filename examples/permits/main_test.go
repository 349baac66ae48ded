package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/exampletest"
)

func TestRun(t *testing.T) {
	exampletest.Run(t, run,
		`its permit is back`,
	)
}
