// These tests run each script on its own, and check what it answers and what it leaves. The key may
// have nothing, something of the caller's, something of another owner's, something over, or
// something foreign. The script may run late, without memory, or without rights, or may fail
// midway.

package semaphore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/scripttest"
)

const tenMinutes = 600_000

// step is one run of a script, and its wanted results.
type step struct {
	script string
	track  string // "track call" of a call that counts once
	args   []any
	reply  string
	state  string // after the run
}

// sources are the scripts by name.
var sources = map[string]string{
	"take": takeScript.Source(), "cancel": cancelScript.Source(), "begin": beginScript.Source(),
	"give": giveScript.Source(), "add": addScript.Source(), "set": setScript.Source(),
	"drain": drainScript.Source(), "free": freeScript.Source(),
	"lease": leaseScript.Source(), "renew": renewScript.Source(), "release": releaseScript.Source(),
	"update": updateScript.Source(), "look": lookScript.Source(), "state": stateScript.Source(),
}

// counted has the keys of a counting semaphore, and leased the keys of permits.
var (
	counted = []string{"s", "calls", "all"}
	settled = []string{"s", "calls", "taken"}
	leased  = []string{"s", "taken"}
	known   = []string{"s", "calls", "taken", "all"}
)

func keysOf(script string) []string {
	switch script {
	case "take", "cancel", "begin", "give":
		return counted
	case "add", "drain":
		return counted[:2]
	case "set":
		return settled
	case "free":
		return []string{"s"}
	case "renew", "update", "look":
		return []string{"taken"}
	default:
		return leased
	}
}

func argsOf(s step) []any {
	if s.track == "" {
		return s.args
	}
	track, call, _ := strings.Cut(s.track, " ")
	return append([]any{track, call, tenMinutes}, s.args...)
}

func TestCountingScripts(t *testing.T) {
	scripttest.OnServers(t, func(t *testing.T, rdb *redis.Client) {
		for _, tc := range []struct {
			name  string
			given []string // commands
			steps []step
		}{
			{"nothing there", nil, []step{
				{"take", "0 1", []any{1}, "0 1", ""},
				{"free", "", nil, "1 0", ""},
				{"drain", "0 2", nil, "1 0", "calls=map[0:2 1 0] for 10m0s"},
				{"add", "0 3", []any{2, "PUBLISH", "c"}, "1 2", "s=2 | calls=map[0:3 1 2] for 10m0s"},
			}},
			{"set once", nil, []step{
				{"set", "0 1", []any{3, 1, "PUBLISH", "c"}, "1 3", "s=3 | calls=map[0:1 1 3] for 10m0s"},
				{"set", "0 1", []any{3, 1, "PUBLISH", "c"}, "1 3", "s=3 | calls=map[0:1 1 3] for 10m0s"},
				{"set", "0 2", []any{4, 1, "PUBLISH", "c"}, "0 0", "s=3 | calls=map[0:2 0 0] for 10m0s"},
				{"set", "0 3", []any{4, 0, "PUBLISH", "c"}, "1 4", "s=4 | calls=map[0:3 1 4] for 10m0s"},
			}},
			{"take twice by one call", []string{"SET s 3"}, []step{
				{"take", "0 7", []any{2}, "1 0", "s=1 | calls=map[0:7 1 0] for 10m0s"},
				{"take", "0 7", []any{2}, "1 0", "s=1 | calls=map[0:7 1 0] for 10m0s"},
				{"take", "1 8", []any{2}, "0 0", "s=1 | calls=map[0:7 1 0] for 10m0s"},
				{"take", "0 6", []any{1}, "0", "s=1 | calls=map[0:7 1 0] for 10m0s"}, // overtaken
				{"take", "1 9", []any{1}, "1 0", "s=0 | calls=map[0:7 1 0 1:9 1 0] for 10m0s"},
			}},
			{"cancel what was taken", []string{"SET s 3"}, []step{
				{"take", "0 7", []any{2}, "1 0", "s=1 | calls=map[0:7 1 0] for 10m0s"},
				{"cancel", "0 7", []any{2, "PUBLISH", "c"}, "0 0", "s=3 | calls=map[0:7 0 0] for 10m0s"},
				{"cancel", "0 7", []any{2, "PUBLISH", "c"}, "0 0", "s=3 | calls=map[0:7 0 0] for 10m0s"},
				{"take", "0 7", []any{2}, "0 0", "s=3 | calls=map[0:7 0 0] for 10m0s"},
			}},
			{"cancel what is still to come", []string{"SET s 3"}, []step{
				{"cancel", "0 7", []any{2, "PUBLISH", "c"}, "0 0", "s=3 | calls=map[0:7 0 0] for 10m0s"},
				{"take", "0 7", []any{2}, "0 0", "s=3 | calls=map[0:7 0 0] for 10m0s"},
				{"take", "0 8", []any{2}, "1 0", "s=1 | calls=map[0:8 1 0] for 10m0s"},
				{"cancel", "0 7", []any{2, "PUBLISH", "c"}, "0", "s=1 | calls=map[0:8 1 0] for 10m0s"}, // overtaken
			}},
			{"in all", nil, []step{
				{"begin", "0 1", []any{3, "PUBLISH", "c"}, "1 3", "s=3 | calls=map[0:1 1 3] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
				{"begin", "0 1", []any{3, "PUBLISH", "c"}, "1 3", "s=3 | calls=map[0:1 1 3] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
				{"begin", "0 2", []any{4, "PUBLISH", "c"}, "0 0", "s=3 | calls=map[0:2 0 0] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
				{"take", "0 3", []any{4}, "0 2", "s=3 | calls=map[0:2 0 0] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
				{"give", "0 4", []any{-1, "PUBLISH", "c", 1}, "1 2", "s=2 | calls=map[0:4 1 2] for 10m0s | all=map[all:2 since:T] for 1h10m0s"},
				{"take", "0 5", []any{3}, "0 2", "s=2 | calls=map[0:4 1 2] for 10m0s | all=map[all:2 since:T] for 1h10m0s"},
				{"give", "0 6", []any{2, "PUBLISH", "c", 0}, "1 4", "s=4 | calls=map[0:6 1 4] for 10m0s | all=map[all:4 since:T] for 1h10m0s"},
				{"take", "0 7", []any{5}, "0 2", "s=4 | calls=map[0:6 1 4] for 10m0s | all=map[all:4 since:T] for 1h10m0s"},
				{"give", "0 8", []any{-4, "PUBLISH", "c", 1}, "1 0", "s=0 | calls=map[0:8 1 0] for 10m0s | all=map[all:0 since:T] for 1h10m0s"},
				{"take", "0 9", []any{5}, "0 0", "s=0 | calls=map[0:8 1 0] for 10m0s | all=map[all:0 since:T] for 1h10m0s"},
			}},
			{"added to nothing", nil, []step{
				{"give", "0 1", []any{2, "PUBLISH", "c", 1}, "1 2", "s=2 | calls=map[0:1 1 2] for 10m0s | all=map[all:2 since:T] for 1h10m0s"},
				{"take", "0 2", []any{3}, "0 2", "s=2 | calls=map[0:1 1 2] for 10m0s | all=map[all:2 since:T] for 1h10m0s"},
			}},
			{"given back to nothing", []string{"HSET all all 3 since 5"}, []step{
				{"give", "0 1", []any{2, "PUBLISH", "c", 0}, "1 2", "s=2 | calls=map[0:1 1 2] for 10m0s"},
				{"take", "0 2", []any{3}, "0 0", "s=2 | calls=map[0:1 1 2] for 10m0s"},
			}},
			{"added to more than there were", []string{"SET s 9", "HSET all all 3 since 5"}, []step{
				{"give", "0 1", []any{1, "PUBLISH", "c", 1}, "1 10", "s=10 | calls=map[0:1 1 10] for 10m0s | all=map[all:0 since:T] for 1h10m0s"},
				{"take", "0 2", []any{11}, "0 0", "s=10 | calls=map[0:1 1 10] for 10m0s | all=map[all:0 since:T] for 1h10m0s"},
			}},
			{"cancel where more were given back than there were", []string{"SET s 3", "HSET all all 3 since 5"}, []step{
				{"take", "0 1", []any{2}, "1 5", "s=1 | calls=map[0:1 1 5] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
				{"give", "1 2", []any{2, "PUBLISH", "c", 0}, "1 3", "s=3 | calls=map[0:1 1 5 1:2 1 3] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
				{"cancel", "0 1", []any{2, "PUBLISH", "c"}, "0 0", "s=5 | calls=map[0:1 0 0 1:2 1 3] for 10m0s | all=map[all:5 since:T] for 1h10m0s"},
				{"take", "0 3", []any{6}, "0 2", "s=5 | calls=map[0:1 0 0 1:2 1 3] for 10m0s | all=map[all:5 since:T] for 1h10m0s"},
			}},
			{"Java has set more", []string{"SET s 9", "HSET all all 3 since 5"}, []step{
				{"take", "0 1", []any{10}, "0 0", "s=9 | all=map[all:3 since:T]"},
			}},
			{"cancel where the semaphore is another", []string{"SET s 3", "HSET all all 3 since 5"}, []step{
				{"take", "0 7", []any{2}, "1 5", "s=1 | calls=map[0:7 1 5] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
				{"take", "1 8", []any{1}, "1 5", "s=0 | calls=map[0:7 1 5 1:8 1 5] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
				{"cancel", "0 7", []any{2, "PUBLISH", "c"}, "0 0", "s=2 | calls=map[0:7 0 0 1:8 1 5] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
			}},
			{"cancel where the semaphore is gone", []string{"SET s 3"}, []step{
				{"take", "0 7", []any{3}, "1 0", "s=0 | calls=map[0:7 1 0] for 10m0s"},
				{"drain", "1 8", nil, "1 0", "s=0 | calls=map[0:7 1 0 1:8 1 0] for 10m0s"},
			}},
			{"time to live is kept", []string{"SET s 3 PX 60000"}, []step{
				{"take", "0 1", []any{1}, "1 0", "s=2 for 1m0s | calls=map[0:1 1 0] for 10m0s"},
				{"add", "0 2", []any{5, "PUBLISH", "c"}, "1 7", "s=7 for 1m0s | calls=map[0:2 1 7] for 10m0s"},
				{"drain", "0 3", nil, "1 7", "s=0 for 1m0s | calls=map[0:3 1 7] for 10m0s"},
				{"set", "0 4", []any{2, 0, "PUBLISH", "c"}, "1 2", "s=2 for 1m0s | calls=map[0:4 1 2] for 10m0s"},
			}},
			{"fewer than none", []string{"SET s 1"}, []step{
				{"add", "0 1", []any{-3, "PUBLISH", "c"}, "1 -2", "s=-2 | calls=map[0:1 1 -2] for 10m0s"},
				{"take", "0 2", []any{1}, "0 0", "s=-2 | calls=map[0:1 1 -2] for 10m0s"},
				{"drain", "0 3", nil, "1 0", "s=-2 | calls=map[0:3 1 0] for 10m0s"},
				{"add", "0 4", []any{3, "PUBLISH", "c"}, "1 1", "s=1 | calls=map[0:4 1 1] for 10m0s"},
			}},
		} {
			t.Run(tc.name, func(t *testing.T) {
				a := asker{t, rdb}
				scripttest.Texts(tc.given...).Put(t, rdb)
				a.play(tc.steps)
			})
		}
	})
}

func (a asker) play(steps []step) {
	a.t.Helper()
	for i, s := range steps {
		if got := a.ask(sources[s.script], keysOf(s.script), argsOf(s)...); got != s.reply {
			a.t.Errorf("step %d, %s %s %v: %q, want %q", i, s.script, s.track, s.args, got, s.reply)
		}
		if got := a.state(known...); got != s.state {
			a.t.Errorf("step %d, %s %s %v leaves\n     %q\nwant %q", i, s.script, s.track, s.args, got, s.state)
		}
	}
}

// callsOfEach has one call of each script.
var callsOfEach = map[string]step{
	"take": {"take", "0 1", []any{1}, "", ""}, "cancel": {"cancel", "0 1", []any{1, "PUBLISH", "c"}, "", ""},
	"begin": {"begin", "0 1", []any{1, "PUBLISH", "c"}, "", ""}, "give": {"give", "0 1", []any{1, "PUBLISH", "c", 1}, "", ""},
	"add": {"add", "0 1", []any{1, "PUBLISH", "c"}, "", ""}, "set": {"set", "0 1", []any{1, 0, "PUBLISH", "c"}, "", ""},
	"drain": {"drain", "0 1", nil, "", ""}, "free": {"free", "", nil, "", ""},
	"lease": {"lease", "", []any{9000, "PUBLISH", "c", "a"}, "", ""}, "renew": {"renew", "", []any{9000, "a"}, "", ""},
	"release": {"release", "", []any{"PUBLISH", "c", "a"}, "", ""}, "update": {"update", "", []any{9000, "a"}, "", ""},
	"look": {"look", "", []any{"a"}, "", ""}, "state": {"state", "", nil, "", ""},
}

// Scripts that come late, or find a value that is not theirs, say so and change nothing.
func TestScriptsThatMustDoNothing(t *testing.T) {
	scripttest.OnServers(t, func(t *testing.T, rdb *redis.Client) {
		for _, tc := range []struct {
			given   []string
			left    time.Duration // until the not-after
			scripts string
			reply   string
		}{
			{[]string{"SET s 3", "ZADD taken 99999999999999 x"}, -time.Millisecond, "take cancel begin give add set drain lease renew update", "-1"},
			{[]string{"HSET s f v"}, time.Minute, "take cancel begin give add set drain free lease release state", "WRONGTYPE"},
			{[]string{"SET s 1.5 PX 60000"}, time.Minute, "take cancel add set drain free lease release state", "WRONGTYPE"},
			{[]string{"SET s 3", "SET taken x"}, time.Minute, "lease renew release update look state set", "WRONGTYPE"},
		} {
			a := asker{t, rdb}
			scripttest.Texts(tc.given...).Put(t, rdb)
			before := a.state(known...)
			for _, script := range strings.Fields(tc.scripts) {
				if got := a.askBy(tc.left, sources[script], keysOf(script), argsOf(callsOfEach[script])...); got != tc.reply {
					t.Errorf("%q, %s: %q, want %q", tc.given, script, got, tc.reply)
				}
				if got := a.state(known...); got != before {
					t.Errorf("%q, %s leaves %q", tc.given, script, got)
				}
			}
		}
	})
}

// in returns the server's clock plus d in ms, to within a minute.
func (a asker) in(d time.Duration) string {
	return fmt.Sprint((scripttest.Now(a.t, a.rdb) + d.Microseconds()) / 1000)
}

func TestLeasingScripts(t *testing.T) {
	const never = "922337203685477"
	scripttest.OnServers(t, func(t *testing.T, rdb *redis.Client) {
		a := asker{t, rdb}
		soon, past := a.in(time.Hour), a.in(-time.Hour)
		for _, tc := range []struct {
			name  string
			given []string
			steps []step
		}{
			{"nothing there", nil, []step{
				{"lease", "", []any{1000, "PUBLISH", "c", "a"}, "NOPERMITS", ""},
				{"renew", "", []any{1000, "a"}, "0", ""},
				{"release", "", []any{"PUBLISH", "c", "a"}, "0", ""},
				{"update", "", []any{1000, "a"}, "0", ""},
				{"look", "", []any{"a"}, "0", ""},
				{"state", "", nil, "1 0 0", ""},
			}},
			{"granted", []string{"SET s 3"}, []step{
				{"lease", "", []any{9000, "PUBLISH", "c", "a", "b"}, "1 9000", "s=1 | taken=[a b]"},
				{"lease", "", []any{9000, "PUBLISH", "c", "a", "b"}, "1 9000", "s=1 | taken=[a b]"},
				{"renew", "", []any{20000, "a", "b"}, "1 20000", "s=1 | taken=[a b]"},
				{"state", "", nil, "1 1 2", "s=1 | taken=[a b]"},
				{"release", "", []any{"PUBLISH", "c", "a", "b"}, "1", "s=3"},
				{"release", "", []any{"PUBLISH", "c", "a", "b"}, "0", "s=3"},
				{"renew", "", []any{20000, "a", "b"}, "0", "s=3"},
			}},
			{"another's", []string{"SET s 1", "ZADD taken " + soon + " x"}, []step{
				{"lease", "", []any{9000, "PUBLISH", "c", "a", "b", "d"}, "NOPERMITS", "s=1 | taken=[x]"},
				{"renew", "", []any{9000, "a"}, "0", "s=1 | taken=[x]"},
				{"release", "", []any{"PUBLISH", "c", "a"}, "0", "s=1 | taken=[x]"},
				{"update", "", []any{1000, "a"}, "0", "s=1 | taken=[x]"},
				{"look", "", []any{"a"}, "0", "s=1 | taken=[x]"},
			}},
			{"taken for ever", []string{"SET s 0", "ZADD taken " + never + " x"}, []step{
				{"lease", "", []any{9000, "PUBLISH", "c", "a"}, "0 -1", "s=0 | taken=[x]"},
				{"look", "", []any{"x"}, "1 -1", "s=0 | taken=[x]"},
				{"renew", "", []any{9000, "x"}, "1 1000000000000", "s=0 | taken=[x]"},
				{"state", "", nil, "1 0 1", "s=0 | taken=[x]"},
				{"release", "", []any{"PUBLISH", "c", "x"}, "1", "s=1"},
			}},
			{"over", []string{"SET s 0", "ZADD taken " + past + " x " + past + " y"}, []step{
				{"state", "", nil, "1 2 0", "s=0 | taken=[x y]"},
				{"renew", "", []any{9000, "x"}, "0", "s=0 | taken=[x y]"},
				{"update", "", []any{9000, "x"}, "0", "s=0 | taken=[x y]"},
				{"look", "", []any{"x"}, "0", "s=0 | taken=[x y]"},
				{"release", "", []any{"PUBLISH", "c", "x"}, "0", "s=1 | taken=[y]"},
				{"lease", "", []any{9000, "PUBLISH", "c", "a", "b"}, "1 9000", "s=0 | taken=[a b]"},
			}},
			{"over, partly taken back", []string{"SET s 2", "ZADD taken " + past + " a"}, []step{
				{"lease", "", []any{9000, "PUBLISH", "c", "a", "b"}, "1 9000", "s=1 | taken=[a b]"},
			}},
			{"partly released", []string{"SET s 1", "ZADD taken " + soon + " a"}, []step{
				{"renew", "", []any{9000, "a", "b"}, "0", "s=1 | taken=[a]"},
				{"release", "", []any{"PUBLISH", "c", "a", "b"}, "0", "s=2"},
			}},
			{"count gone", []string{"ZADD taken " + soon + " a"}, []step{
				{"lease", "", []any{9000, "PUBLISH", "c", "b"}, "NOPERMITS", "taken=[a]"},
				{"set", "0 1", []any{3, 1, "PUBLISH", "c"}, "1 2", "s=2 | calls=map[0:1 1 2] for 10m0s | taken=[a]"},
				{"release", "", []any{"PUBLISH", "c", "a"}, "1", "s=3 | calls=map[0:1 1 2] for 10m0s"},
			}},
			{"released where the count is gone", []string{"ZADD taken " + soon + " a"}, []step{
				{"release", "", []any{"PUBLISH", "c", "a"}, "1", ""},
			}},
			{"fewer than are taken", []string{"SET s 1", "ZADD taken " + soon + " a " + soon + " b"}, []step{
				{"set", "0 1", []any{1, 0, "PUBLISH", "c"}, "1 -1", "s=-1 | calls=map[0:1 1 -1] for 10m0s | taken=[a b]"},
				{"release", "", []any{"PUBLISH", "c", "a"}, "1", "s=0 | calls=map[0:1 1 -1] for 10m0s | taken=[b]"},
				{"lease", "", []any{9000, "PUBLISH", "c", "d", "e"}, "NOPERMITS", "s=0 | calls=map[0:1 1 -1] for 10m0s | taken=[b]"},
			}},
			{"with a time to live", []string{"SET s 3 PX 60000"}, []step{
				{"lease", "", []any{9000, "PUBLISH", "c", "a"}, "1 9000", "s=2 for 1m0s | taken=[a] for 1m0s"},
				{"update", "", []any{20000, "a"}, "1", "s=2 for 1m0s | taken=[a] for 1m0s"},
				{"release", "", []any{"PUBLISH", "c", "a"}, "1", "s=3 for 1m0s"},
			}},
		} {
			t.Run(tc.name, func(t *testing.T) {
				a := asker{t, rdb}
				scripttest.Texts(tc.given...).Put(t, rdb)
				a.play(tc.steps)
			})
		}
	})
}

// When memory is short, no new permit is granted. Permits that are held can be renewed and given
// back.
func TestOutOfMemory(t *testing.T) {
	rdb := redistest.Server(t).Client(t)
	a := asker{t, rdb}
	scripttest.Texts("SET s 3", "ZADD taken "+a.in(time.Hour)+" a").Put(t, rdb)
	scripttest.WithoutMemory(t, rdb)
	a.play([]step{
		{"take", "0 1", []any{1}, "OOM", "s=3 | taken=[a]"},
		{"set", "0 2", []any{9, 0, "PUBLISH", "c"}, "OOM", "s=3 | taken=[a]"},
		{"lease", "", []any{9000, "PUBLISH", "c", "b"}, "OOM", "s=3 | taken=[a]"},
		{"renew", "", []any{9000_000, "a"}, "1 9000000", "s=3 | taken=[a]"},
		{"update", "", []any{9000_000, "a"}, "1", "s=3 | taken=[a]"},
		{"free", "", nil, "1 3", "s=3 | taken=[a]"},
		{"state", "", nil, "1 3 1", "s=3 | taken=[a]"},
		{"release", "", []any{"PUBLISH", "c", "a"}, "1", "s=4"},
		{"cancel", "0 3", []any{1, "PUBLISH", "c"}, "0 0", "s=4 | calls=map[0:3 0 0] for 10m0s"},
		{"add", "0 4", []any{1, "PUBLISH", "c"}, "1 5", "s=5 | calls=map[0:4 1 5] for 10m0s"},
		{"drain", "0 5", nil, "1 5", "s=0 | calls=map[0:5 1 5] for 10m0s"},
	})
}

// A script that fails midway has done nothing, whichever command fails.
func TestFailingMidway(t *testing.T) {
	m := redistest.Mini(t)
	rdb := m.Client()
	a := asker{t, rdb}
	for _, tc := range []struct {
		given []string
		step  step
	}{
		{[]string{"SET s 3"}, step{script: "take", track: "0 2", args: []any{2}}},
		{[]string{"SET s 3", "HSET calls 0 1~1~0", "PEXPIRE calls 600000"}, step{script: "take", track: "0 2", args: []any{2}}},
		{[]string{"SET s 1", "HSET calls 0 2~1~0", "PEXPIRE calls 600000"}, step{script: "cancel", track: "0 2", args: []any{2, "PUBLISH", "c"}}},
		{nil, step{script: "cancel", track: "0 2", args: []any{2, "PUBLISH", "c"}}},
		{[]string{"SET s 1"}, step{script: "add", track: "0 2", args: []any{2, "PUBLISH", "c"}}},
		{nil, step{script: "set", track: "0 2", args: []any{2, 1, "PUBLISH", "c"}}},
		{[]string{"SET s 5"}, step{script: "drain", track: "0 2"}},
		{[]string{"SET s 5"}, step{script: "lease", args: []any{9000, "PUBLISH", "c", "a", "b"}}},
		{[]string{"SET s 0", "ZADD taken 5 x 5 y"}, step{script: "lease", args: []any{9000, "PUBLISH", "c", "a"}}},
		{[]string{"SET s 0", "ZADD taken 5 a 5 y"}, step{script: "lease", args: []any{9000, "PUBLISH", "c", "a", "b"}}},
		{[]string{"SET s 1", "ZADD taken 99999999999999 a 99999999999999 b"}, step{script: "release", args: []any{"PUBLISH", "c", "a", "b"}}},
		{[]string{"SET s 1", "ZADD taken " + a.in(time.Minute) + " a"}, step{script: "renew", args: []any{600_000, "a"}}},
	} {
		given := func() { scripttest.Texts(tc.given...).Put(t, rdb) }
		script, args := tc.step.script, argsOf(tc.step)
		send := func() error {
			_, err := scripttest.Send(t, rdb, time.Minute, sources[script], keysOf(script), args...)
			return err
		}
		given()
		before := a.sum()
		want := a.ask(sources[script], keysOf(script), args...)
		after := a.sum()
		for k, err := range scripttest.Failures(m, given, send) {
			got := a.sum()
			switch {
			case err != nil && got != before:
				t.Errorf("%v, then %s: command %d fails (%v) and leaves %q, want %q", tc.given, script, k, err, got, before)
			case err == nil && got != after:
				t.Errorf("%v, then %s: command %d fails unnoticed and leaves %q, want %q", tc.given, script, k, got, after)
			}
			scripttest.Ends(t, rdb, "calls")
		}
		if strings.HasPrefix(want, "ERR") {
			t.Errorf("%s: %s", script, want)
		}
	}
}

// sum returns the number of permits in all, taken or free. It also returns whether a is taken, and
// the record of the call.
func (a asker) sum() string {
	ctx := context.Background()
	free, _ := a.rdb.Get(ctx, "s").Int64()
	taken := a.rdb.ZCard(ctx, "taken").Val()
	return fmt.Sprintf("%d in all, a %v, call %q", free+taken,
		a.rdb.ZScore(ctx, "taken", "a").Val() > 5, a.rdb.HGet(ctx, "calls", "0").Val())
}
