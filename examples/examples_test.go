//go:build unix

// The examples run here as a user runs them: as programs, on the Redis that they embed.

package examples

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// prints has, for each example, patterns that match what it prints.
var prints = map[string][]string{
	"cache": {`version 5: alone`},
	"cron": {
		`tick \d+: missed`,
		`tick \d+: .* comes too late with it, and is refused`,
		`\d+ ticks sent once, \d+ missed, \d+ refused`,
	},
	"debounce": {`6 changes: rebuilt 1 time, left to a newer change 5 times`},
	"failover": {
		`B has the lock as well\n  B writes, then A: fence: a later holder has been here before`,
		`A is refused: .*replica`,
		`B alone has the lock`,
		`B is refused: .*held by another`,
		`A still has it`,
	},
	"inventory": {`20 want 6 of 100 bolts: 4 are left`},
	"leader": { // killed, stopped, shut down in turn; the one that was stopped leads again
		`(east|north|west) leads, and is killed\n`,
		`(east|north|west) leads, and is stopped\n`,
		`(east|north|west) leads, and is shut down\n`,
		`I lead no more: .*lease lost`,
		`(east|north|west) leads again\n`,
	},
	"longhold": {
		`alarm: forgotten is held by .*, since it was granted`,
		`alarm: hanging is held by .*, since it was first seen`,
		`forgotten: mutex, held by \[`,
		`forgotten is free again`,
	},
	"migration": {`three replicas have started, and applied \[1 2 3\]`},
	"multilock": {
		`booked all three`,
		`another booker: .*held by another`,
		`not booked`,
		`the driver is free for others`,
		`back: booked`,
	},
	"once": {
		`the first request was given up`,
		`300 requests have the receipt of one charge`,
		`another order under the same key is refused`,
	},
	"permits": {`its permit is back`},
	"quorum": {
		`all up: granted by [345] of 5`,
		`two stopped: granted by 3 of 5, with a greater token: true`,
		`three stopped: the holder is told after .*: true`,
		`nobody is granted it now: true`,
		`one is back, with its data: granted by 3 of 5`,
	},
	"shards": {
		`east has 4 shards, north has 4 shards, west has 4 shards; east is killed\n`,
		`north has 6 shards, west has 6 shards; north is stopped\n`,
		`west has 12 shards; north goes on\n`,
		`north: I have lost my shards: .*lease lost`,
		`north has 6 shards, west has 6 shards; that is all\n`,
	},
	"stock": {
		`without a lock: 100 units, (10[1-9]|1[1-6][0-9]) sold`, // each of the 160 may find one
		`with 16 stripes: 100 units, 100 sold`,
	},
	"tick": {`job 1: run once, by the replica whose clock is \w+`, `job 5: run once, by the replica whose clock is \w+`},
	"tickets": {
		`customer 7 comes, 7 before it`,
		`customer 3 leaves`,
		`the desk opens, 7 wait`,
		`7 customers served in the order`,
	},
	"waitforn": {`all are ready: deploy`},
	"workers":  {`10 calls, at most [1-3] at a time`},
}

func TestEachExamplePrintsWhatItShows(t *testing.T) {
	redistest.RealTime(t) // on a machine that is busy with other things they print something else
	programs := build(t)
	files, err := filepath.Glob("*/main.go")
	redistest.Must(t, err)
	var names []string
	for _, file := range files {
		names = append(names, filepath.Dir(file))
	}
	// first wants the Redis of its page; tour has tests of its own.
	tested := slices.Sorted(maps.Keys(prints))
	if all := append([]string{"first", "tour"}, tested...); !slices.Equal(names, slices.Sorted(slices.Values(all))) {
		t.Errorf("the examples are %q, and those that are tested %q", names, all)
	}
	for _, name := range tested {
		t.Run(name, func(t *testing.T) {
			if name == "failover" {
				needsRedisServer(t)
			}
			out, err := run(t, filepath.Join(programs, name))
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, pattern := range prints[name] {
				if !regexp.MustCompile(pattern).Match(out) {
					t.Errorf("nothing in it matches %q:\n%s", pattern, out)
				}
			}
		})
	}
	t.Run("failover without redis-server", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		out, err := run(t, filepath.Join(programs, "failover"))
		if err == nil || !regexp.MustCompile(`needs redis-server`).Match(out) {
			t.Errorf("%v, and does not say what it needs:\n%s", err, out)
		}
	})
}

// build compiles all examples into a folder, and returns its path.
func build(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	args := []string{"build", "-buildvcs=false", "-o", folder}
	if redistest.RaceDetector {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "./...")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return folder
}

// needsRedisServer puts the server for tests into the PATH, as redis-server.
func needsRedisServer(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	redistest.Must(t, os.Symlink(redistest.Needs(t), filepath.Join(folder, "redis-server")))
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// run returns what the program prints. One that goes on for two minutes hangs, and is killed.
func run(t *testing.T, program string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), "REDIS_URL=", "GORACE=atexit_sleep_ms=100") // not a second for each
	// It may have started others, which hold its output open.
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}
