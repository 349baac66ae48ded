// These tests run each script on its own, and check what it answers and what it leaves. The latch
// may be absent, set, counted, over, or foreign. The script may run late or without memory, or may
// fail midway.

package latch

import (
	"context"
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
	"set":       setScript.Source(),
	"countdown": countDownScript.Source(),
	"delete":    deleteScript.Source(),
	"look":      lookScript.Source(),
	"count":     countScript.Source(),
}

func keysOf(script string) []string {
	switch script {
	case "look":
		return []string{"l", "generations"}
	case "count":
		return []string{"l"}
	default:
		return []string{"l", "calls", "generations"}
	}
}

func argsOf(s step) []any {
	if s.track == "" {
		return s.args
	}
	track, call, _ := strings.Cut(s.track, " ")
	return append([]any{track, call, tenMinutes}, s.args...)
}

func set(track string, n, life int, reply, state string) step {
	return step{"set", track, []any{n, life, "PUBLISH", "c"}, reply, state}
}

func countDown(track, reply, state string) step {
	return step{"countdown", track, []any{"PUBLISH", "c"}, reply, state}
}

func remove(track, reply, state string) step {
	return step{"delete", track, []any{"PUBLISH", "c"}, reply, state}
}

func look(generation, reply, state string) step {
	return step{"look", "", []any{generation}, reply, state}
}

func TestScripts(t *testing.T) {
	scripttest.OnServers(t, func(t *testing.T, rdb *redis.Client) {
		for _, tc := range []struct {
			name  string
			given []string
			steps []step
		}{
			{"nothing there", nil, []step{
				look("0", "1", "-  map[]"),
				look("7", "3", "-  map[]"),
				{"count", "", nil, "1 0", "-  map[]"},
				countDown("0 1", "1 0", "-  map[0:1 1 0]"),
				remove("0 2", "0 0", "-  map[0:2 0 0]"),
			}},
			{"to zero", nil, []step{
				set("0 1", 2, 0, "1 0", "2 o map[0:1 1 0]"),
				set("0 1", 2, 0, "1 0", "2 o map[0:1 1 0]"),
				set("0 2", 3, 0, "0 0", "2 o map[0:2 0 0]"),
				{"count", "", nil, "1 2", "2 o map[0:2 0 0]"},
				look("0", "0 gen -1", "2 o map[0:2 0 0]"),
				countDown("0 3", "1 1", "1 o map[0:3 1 1]"),
				countDown("0 3", "1 1", "1 o map[0:3 1 1]"),
				look("newest", "0 gen -1", "1 o map[0:3 1 1]"),
				countDown("1 4", "1 0", "- z map[0:3 1 1 1:4 1 0]"),
				countDown("0 2", "0", "- z map[0:3 1 1 1:4 1 0]"), // overtaken
				look("newest", "1", "- z map[0:3 1 1 1:4 1 0]"),
				look("0", "1", "- z map[0:3 1 1 1:4 1 0]"),
			}},
			{"deleted", nil, []step{
				set("0 1", 2, 0, "1 0", "2 o map[0:1 1 0]"),
				remove("0 2", "1 0", "- d map[0:2 1 0]"),
				remove("0 2", "1 0", "- d map[0:2 1 0]"),
				look("newest", "2", "- d map[0:2 1 0]"),
				look("0", "1", "- d map[0:2 1 0]"),
				set("0 3", 1, 0, "1 0", "1 do map[0:3 1 0]"),
				remove("0 2", "0", "1 do map[0:3 1 0]"), // overtaken
				countDown("0 4", "1 0", "- dz map[0:4 1 0]"),
			}},
			{"set by Redisson", []string{"SET l 2"}, []step{
				look("0", "0 gen -1", "2 o map[]"),
				look("0", "0 gen -1", "2 o map[]"),
				set("0 1", 2, 0, "0 0", "2 o map[0:1 0 0]"),
				remove("0 2", "1 0", "- d map[0:2 1 0]"),
				look("newest", "2", "- d map[0:2 1 0]"),
			}},
			{"set by Redisson, nobody looks", []string{"SET l 2"}, []step{
				countDown("0 1", "1 1", "1  map[0:1 1 1]"),
				countDown("0 2", "1 0", "-  map[0:2 1 0]"),
			}},
			{"zero and less by Redisson", []string{"SET l -4"}, []step{
				look("0", "1", "-4  map[]"),
				{"count", "", nil, "1 0", "-4  map[]"},
				countDown("0 1", "1 0", "-  map[0:1 1 0]"),
			}},
			{"with an end", nil, []step{
				set("0 1", 2, 60_000, "1 0", "2 o map[0:1 1 0]"),
				countDown("0 2", "1 1", "1 o map[0:2 1 1]"),
				countDown("0 3", "1 0", "- z map[0:3 1 0]"),
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
		if s.script == "look" && s.args[0] == "newest" {
			s.args = []any{a.newest()}
		}
		if got := a.ask(time.Minute, s); got != s.reply {
			a.t.Errorf("step %d, %s %s %v: %q, want %q", i, s.script, s.track, s.args, got, s.reply)
		}
		if got := a.state(); got != s.state {
			a.t.Errorf("step %d, %s %s %v leaves %q, want %q", i, s.script, s.track, s.args, got, s.state)
		}
	}
}

// A generation is known by its number until a hundred other generations have ended.
func TestGenerationsAreForgottenInOrder(t *testing.T) {
	scripttest.OnServers(t, func(t *testing.T, rdb *redis.Client) {
		a := asker{t, rdb}
		var numbers []string
		for i := range 103 {
			a.ask(time.Minute, set("0 "+itoa(3*i+1), 1, 0, "", ""))
			numbers = append(numbers, a.newest())
			if i%2 == 0 {
				a.ask(time.Minute, countDown("0 "+itoa(3*i+2), "", ""))
			} else {
				a.ask(time.Minute, remove("0 "+itoa(3*i+2), "", ""))
			}
		}
		for i, number := range numbers {
			want := []string{"1", "2"}[i%2]
			if i < 3 {
				want = "3"
			}
			redistest.Equal(t, a.ask(time.Minute, look(number, "", "")), want, "%q, want %q (generation %d)", want, i)
		}
	})
}

// Scripts that come late, or find a value that is not theirs, say so and change nothing.
func TestScriptsThatMustDoNothing(t *testing.T) {
	scripttest.OnServers(t, func(t *testing.T, rdb *redis.Client) {
		a := asker{t, rdb}
		steps := []step{set("0 1", 2, 0, "", ""), countDown("0 1", "", ""), remove("0 1", "", ""), look("0", "", ""), {script: "count"}}
		for _, tc := range []struct {
			given []string
			left  time.Duration // until the not-after
			steps []step
			reply string
		}{
			{nil, -time.Millisecond, steps[:4], "-1"},
			{[]string{"SET l 1"}, -time.Millisecond, steps[:4], "-1"},
			{[]string{"HSET l f v"}, time.Minute, steps, "WRONGTYPE"},
			{[]string{"SET l x"}, time.Minute, steps, "WRONGTYPE"},
		} {
			scripttest.Texts(tc.given...).Put(t, rdb)
			before := a.state()
			for _, s := range tc.steps {
				redistest.Equal(t, a.ask(tc.left, s), tc.reply, "%q, want %q (%q, %s)", tc.reply, tc.given, s.script)
				if got := a.state(); got != before {
					t.Errorf("%q, %s leaves %q, was %q", tc.given, s.script, got, before)
				}
			}
		}
	})
}

// When memory is short, a latch cannot be set, but it can be counted down and deleted.
func TestOutOfMemory(t *testing.T) {
	rdb := redistest.Server(t).Client(t)
	a := asker{t, rdb}
	a.play([]step{set("0 1", 2, 0, "1 0", "2 o map[0:1 1 0]")})
	scripttest.WithoutMemory(t, rdb)
	a.play([]step{
		look("0", "0 gen -1", "2 o map[0:1 1 0]"),
		countDown("0 2", "1 1", "1 o map[0:2 1 1]"),
		remove("0 3", "1 0", "- d map[0:3 1 0]"),
		set("0 4", 2, 0, "OOM", "- d map[0:3 1 0]"),
		countDown("0 5", "1 0", "- d map[0:5 1 0]"),
		look("newest", "2", "- d map[0:5 1 0]"),
	})
}

// A script that fails midway has done nothing, or everything but its record. Whichever command
// fails, only the count may be left without an expiry.
func TestFailingMidway(t *testing.T) {
	m := redistest.Mini(t)
	rdb := m.Client()
	a := asker{t, rdb}
	open := []string{"ZADD generations 7 o:7:0", "PEXPIRE generations 90000"}
	for _, tc := range []struct {
		given []string
		step  step
	}{
		{nil, set("0 2", 2, 0, "", "")},
		{append([]string{"HSET calls 0 1~1~0", "PEXPIRE calls 600000"}, open...), set("0 2", 2, 60_000, "", "")},
		{append([]string{"SET l 2"}, open...), countDown("0 2", "", "")},
		{append([]string{"SET l 1"}, open...), countDown("0 2", "", "")},
		{append([]string{"SET l 1"}, open...), remove("0 2", "", "")},
		{[]string{"SET l 1"}, look("0", "", "")},
	} {
		given := func() { scripttest.Texts(tc.given...).Put(t, rdb) }
		send := func() error {
			_, err := scripttest.Send(t, rdb, time.Minute, sources[tc.step.script], keysOf(tc.step.script), argsOf(tc.step)...)
			return err
		}
		given()
		before := a.outcome()
		a.ask(time.Minute, tc.step)
		after := a.outcome()
		for k, err := range scripttest.Failures(m, given, send) {
			got := a.outcome()
			a.state() // state fails if an expiry is missing
			want := after
			if err != nil {
				want = before
			}
			if got != want {
				t.Errorf("%v, then %s: command %d fails (%v) and leaves %q, want %q", tc.given, tc.step.script, k, err, got, want)
			}
		}
	}
}

// If neither the expiry can be set nor the generation be taken back, the record of a latch that Redisson has set does
// not stay.
func TestTheRecordDoesNotStayWithoutAnExpiry(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
		scripttest.Texts("SET l 3").Put(t, rdb)
		mini.Deny("PEXPIRE", "ZREM")
		reply, err := scripttest.Send(t, rdb, time.Minute, sources["look"], keysOf("look"), 0)
		mini.Deny()
		if err == nil {
			t.Errorf("answered %v", reply)
		}
		scripttest.Ends(t, rdb, "generations")
	})
}

// outcome returns the count, the record of the call, and the answer that a waiter of generation 7
// would get.
func (a asker) outcome() string {
	ctx := context.Background()
	return a.rdb.Get(ctx, "l").Val() + ", " + a.rdb.HGet(ctx, "calls", "0").Val() + ", " +
		a.ask(time.Minute, look("7", "", ""))
}
