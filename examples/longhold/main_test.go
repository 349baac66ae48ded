package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/exampletest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestRun(t *testing.T) {
	exampletest.Run(t, run,
		`alarm: forgotten is held by .*, since it was granted`,
		`alarm: hanging is held by .*, since it was first seen`,
		`forgotten: mutex, held by \[`,
		`forgotten is free again`,
	)
}
