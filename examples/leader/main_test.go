//go:build unix

package main

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/exampletest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv("LEADER_ID") != "" {
		main() // the test binary runs as one of the three processes
		return
	}
	redistest.Main(m)
}

// The leader is killed, the next one stopped, the last one shut down; then the one that was stopped
// leads again.
func TestRun(t *testing.T) {
	exampletest.Run(t, run,
		`(east|north|west) leads, and is killed\n`,
		`(east|north|west) leads, and is stopped\n`,
		`(east|north|west) leads, and is shut down\n`,
		`I lead no more: .*lease lost`,
		`(east|north|west) leads again\n`,
	)
}
