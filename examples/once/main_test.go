package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/exampletest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestRun(t *testing.T) {
	exampletest.Run(t, run,
		`the first request was given up`,
		`300 requests have the receipt of one charge`,
		`another order under the same key is refused`,
	)
}
