package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/exampletest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestRun(t *testing.T) {
	exampletest.Run(t, run, `job 1: run once, by the replica whose clock is \w+`, `job 5: run once, by the replica whose clock is \w+`)
}
