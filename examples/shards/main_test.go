//go:build unix

package main

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/exampletest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv("SHARDS_ID") != "" {
		main() // the test binary runs as one of the three processes
		return
	}
	redistest.Main(m)
}

// One is killed, one is stopped, and comes back.
func TestRun(t *testing.T) {
	exampletest.Run(t, run,
		`east has 4 shards, north has 4 shards, west has 4 shards; east is killed\n`,
		`north has 6 shards, west has 6 shards; north is stopped\n`,
		`west has 12 shards; north goes on\n`,
		`north: I have lost my shards: .*lease lost`,
		`north has 6 shards, west has 6 shards; that is all\n`,
	)
}
