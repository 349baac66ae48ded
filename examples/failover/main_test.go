package main

import (
	"os/exec"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/exampletest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestRun(t *testing.T) {
	redistest.Needs(t)
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("the server for tests is another one:", err)
	}
	exampletest.Says(t, run,
		`B has the lock as well\n  B writes, then A: fence: a later holder has been here before`,
		`A is refused: .*replica`,
		`B alone has the lock`,
		`B is refused: .*held by another`,
		`A still has it`,
	)
}

func TestWithoutRedisServerItSaysWhatItNeeds(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	exampletest.Fails(t, run, `needs redis-server`)
}
