package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/exampletest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestRun(t *testing.T) {
	exampletest.Run(t, run,
		`customer 7 comes, 7 before it`,
		`customer 3 leaves`,
		`the desk opens, 7 wait`,
		`7 customers served in the order`,
	)
}
