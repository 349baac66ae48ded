// These tests run each script on its own, and check what it answers and what it leaves. The key may
// have nothing, something of the caller's, something of another owner's, something over, or
// something foreign. The script may run late, without memory, or without rights, or may fail
// midway.

package semaphore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/scripttest"
)

const tenMinutes = 600_000

type step scripttest.Step

// scripts are the scripts by name, and sources their sources.
var (
	scripts = map[string]*conn.Script{
		"take": takeScript, "cancel": cancelScript, "begin": beginScript, "give": giveScript, "add": addScript,
		"set": setScript, "drain": drainScript, "free": freeScript, "lease": leaseScript, "renew": renewScript,
		"release": releaseScript, "update": updateScript, "look": lookScript, "state": stateScript,
	}
	sources = make(map[string]string)
)

func init() {
	for name, script := range scripts {
		sources[name] = script.Source()
	}
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

// parts returns the script, the keys and the arguments of a command. A call that counts once is written track:call.
func parts(command string) (*conn.Script, []string, []any) {
	w := strings.Fields(command)
	var args []any
	for _, word := range w[1:] {
		if track, call, once := strings.Cut(word, ":"); once {
			args = append(args, track, call, tenMinutes)
		} else {
			args = append(args, word)
		}
	}
	return scripts[w[0]], keysOf(w[0]), args
}

func newPlayer(t testing.TB, rdb *redis.Client) *scripttest.Player {
	rdb.FlushAll(t.Context())
	p := &scripttest.Player{T: t, RDB: rdb, Parts: parts}
	p.Words = func(_ string, reply []any) string { return scripttest.Text(reply, nil) }
	p.Left = func() string { return asker{t, rdb}.state(known...) }
	return p
}

// table is what is there, and the steps that follow.
type table struct {
	name  string
	given []string
	steps []step
}

func playAll(t *testing.T, tables []table) {
	t.Helper()
	scripttest.OnServers(t, func(t *testing.T, rdb *redis.Client) {
		for _, each := range tables {
			t.Run(each.name, func(t *testing.T) {
				p := newPlayer(t, rdb)
				p.Do(each.given...)
				scripttest.Play(p, each.steps)
			})
		}
	})
}

func TestCountingScripts(t *testing.T) {
	playAll(t, []table{
		{"nothing there", nil, []step{
			{"take 0:1 1", "0 1", "", ""},
			{"free", "1 0", "", ""},
			{"drain 0:2", "1 0", "", "calls=map[0:2 1 0] for 10m0s"},
			{"add 0:3 2 PUBLISH c", "1 2", "", "s=2 | calls=map[0:3 1 2] for 10m0s"},
		}},
		{"set once", nil, []step{
			{"set 0:1 3 1 PUBLISH c", "1 3", "", "s=3 | calls=map[0:1 1 3] for 10m0s"},
			{"set 0:2 4 1 PUBLISH c", "0 0", "", "s=3 | calls=map[0:2 0 0] for 10m0s"},
			{"set 0:3 4 0 PUBLISH c", "1 4", "", "s=4 | calls=map[0:3 1 4] for 10m0s"},
		}},
		{"take twice by one call", []string{"SET s 3"}, []step{
			{"take 0:7 2", "1 0", "", "s=1 | calls=map[0:7 1 0] for 10m0s"},
			{"take 1:8 2", "0 0", "", "s=1 | calls=map[0:7 1 0] for 10m0s"},
			{"take 0:6 1", "0", "", "s=1 | calls=map[0:7 1 0] for 10m0s"}, // overtaken
			{"take 1:9 1", "1 0", "", "s=0 | calls=map[0:7 1 0 1:9 1 0] for 10m0s"},
		}},
		{"cancel what was taken", []string{"SET s 3"}, []step{
			{"take 0:7 2", "1 0", "", "s=1 | calls=map[0:7 1 0] for 10m0s"},
			{"cancel 0:7 2 PUBLISH c", "0 0", "", "s=3 | calls=map[0:7 0 0] for 10m0s"},
			{"take 0:7 2", "0 0", "", "s=3 | calls=map[0:7 0 0] for 10m0s"},
		}},
		{"cancel what is still to come", []string{"SET s 3"}, []step{
			{"cancel 0:7 2 PUBLISH c", "0 0", "", "s=3 | calls=map[0:7 0 0] for 10m0s"},
			{"take 0:7 2", "0 0", "", "s=3 | calls=map[0:7 0 0] for 10m0s"},
			{"take 0:8 2", "1 0", "", "s=1 | calls=map[0:8 1 0] for 10m0s"},
			{"cancel 0:7 2 PUBLISH c", "0", "", "s=1 | calls=map[0:8 1 0] for 10m0s"}, // overtaken
		}},
		{"in all", nil, []step{
			{"begin 0:1 3 PUBLISH c", "1 3", "", "s=3 | calls=map[0:1 1 3] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
			{"begin 0:2 4 PUBLISH c", "0 0", "", "s=3 | calls=map[0:2 0 0] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
			{"take 0:3 4", "0 2", "", "s=3 | calls=map[0:2 0 0] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
			{"give 0:4 -1 PUBLISH c 1", "1 2", "", "s=2 | calls=map[0:4 1 2] for 10m0s | all=map[all:2 since:T] for 1h10m0s"},
			{"take 0:5 3", "0 2", "", "s=2 | calls=map[0:4 1 2] for 10m0s | all=map[all:2 since:T] for 1h10m0s"},
			{"give 0:6 2 PUBLISH c 0", "1 4", "", "s=4 | calls=map[0:6 1 4] for 10m0s | all=map[all:4 since:T] for 1h10m0s"},
			{"take 0:7 5", "0 2", "", "s=4 | calls=map[0:6 1 4] for 10m0s | all=map[all:4 since:T] for 1h10m0s"},
			{"give 0:8 -4 PUBLISH c 1", "1 0", "", "s=0 | calls=map[0:8 1 0] for 10m0s | all=map[all:0 since:T] for 1h10m0s"},
			{"take 0:9 5", "0 0", "", "s=0 | calls=map[0:8 1 0] for 10m0s | all=map[all:0 since:T] for 1h10m0s"},
		}},
		{"added to nothing", nil, []step{
			{"give 0:1 2 PUBLISH c 1", "1 2", "", "s=2 | calls=map[0:1 1 2] for 10m0s | all=map[all:2 since:T] for 1h10m0s"},
			{"take 0:2 3", "0 2", "", "s=2 | calls=map[0:1 1 2] for 10m0s | all=map[all:2 since:T] for 1h10m0s"},
		}},
		{"given back to nothing", []string{"HSET all all 3 since 5"}, []step{
			{"give 0:1 2 PUBLISH c 0", "1 2", "", "s=2 | calls=map[0:1 1 2] for 10m0s"},
			{"take 0:2 3", "0 0", "", "s=2 | calls=map[0:1 1 2] for 10m0s"},
		}},
		{"added to more than there were", []string{"SET s 9", "HSET all all 3 since 5"}, []step{
			{"give 0:1 1 PUBLISH c 1", "1 10", "", "s=10 | calls=map[0:1 1 10] for 10m0s | all=map[all:0 since:T] for 1h10m0s"},
			{"take 0:2 11", "0 0", "", "s=10 | calls=map[0:1 1 10] for 10m0s | all=map[all:0 since:T] for 1h10m0s"},
		}},
		{"cancel where more were given back than there were", []string{"SET s 3", "HSET all all 3 since 5"}, []step{
			{"take 0:1 2", "1 5", "", "s=1 | calls=map[0:1 1 5] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
			{"give 1:2 2 PUBLISH c 0", "1 3", "", "s=3 | calls=map[0:1 1 5 1:2 1 3] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
			{"cancel 0:1 2 PUBLISH c", "0 0", "", "s=5 | calls=map[0:1 0 0 1:2 1 3] for 10m0s | all=map[all:5 since:T] for 1h10m0s"},
			{"take 0:3 6", "0 2", "", "s=5 | calls=map[0:1 0 0 1:2 1 3] for 10m0s | all=map[all:5 since:T] for 1h10m0s"},
		}},
		{"Java has set more", []string{"SET s 9", "HSET all all 3 since 5"}, []step{
			{"take 0:1 10", "0 0", "", "s=9 | all=map[all:3 since:T]"},
		}},
		{"cancel where the semaphore is another", []string{"SET s 3", "HSET all all 3 since 5"}, []step{
			{"take 0:7 2", "1 5", "", "s=1 | calls=map[0:7 1 5] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
			{"take 1:8 1", "1 5", "", "s=0 | calls=map[0:7 1 5 1:8 1 5] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
			{"cancel 0:7 2 PUBLISH c", "0 0", "", "s=2 | calls=map[0:7 0 0 1:8 1 5] for 10m0s | all=map[all:3 since:T] for 1h10m0s"},
		}},
		{"cancel where the semaphore is gone", []string{"SET s 3"}, []step{
			{"take 0:7 3", "1 0", "", "s=0 | calls=map[0:7 1 0] for 10m0s"},
			{"drain 1:8", "1 0", "", "s=0 | calls=map[0:7 1 0 1:8 1 0] for 10m0s"},
		}},
		{"time to live is kept", []string{"SET s 3 PX 60000"}, []step{
			{"take 0:1 1", "1 0", "", "s=2 for 1m0s | calls=map[0:1 1 0] for 10m0s"},
			{"add 0:2 5 PUBLISH c", "1 7", "", "s=7 for 1m0s | calls=map[0:2 1 7] for 10m0s"},
			{"drain 0:3", "1 7", "", "s=0 for 1m0s | calls=map[0:3 1 7] for 10m0s"},
			{"set 0:4 2 0 PUBLISH c", "1 2", "", "s=2 for 1m0s | calls=map[0:4 1 2] for 10m0s"},
		}},
		{"fewer than none", []string{"SET s 1"}, []step{
			{"add 0:1 -3 PUBLISH c", "1 -2", "", "s=-2 | calls=map[0:1 1 -2] for 10m0s"},
			{"take 0:2 1", "0 0", "", "s=-2 | calls=map[0:1 1 -2] for 10m0s"},
			{"drain 0:3", "1 0", "", "s=-2 | calls=map[0:3 1 0] for 10m0s"},
			{"add 0:4 3 PUBLISH c", "1 1", "", "s=1 | calls=map[0:4 1 1] for 10m0s"},
		}},
	})
}

// Scripts that come late, or find a value that is not theirs, say so and change nothing.
func TestScriptsThatMustDoNothing(t *testing.T) {
	all := map[string]string{
		"take": "take 0:1 1", "cancel": "cancel 0:1 1 PUBLISH c", "begin": "begin 0:1 1 PUBLISH c",
		"give": "give 0:1 1 PUBLISH c 1", "add": "add 0:1 1 PUBLISH c", "set": "set 0:1 1 0 PUBLISH c", "drain": "drain 0:1",
		"free": "free", "lease": "lease 9000 PUBLISH c a", "renew": "renew 9000 a", "release": "release PUBLISH c a",
		"update": "update 9000 a", "look": "look a", "state": "state",
	}
	scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
		for _, tc := range []struct {
			given   []string
			left    time.Duration // until the not-after
			scripts string
			reply   string
		}{
			{[]string{"SET s 3", "ZADD taken 99999999999999 x"}, -time.Millisecond, "take cancel begin give add set drain lease renew update", "[-1 "},
			{[]string{"HSET s f v"}, time.Minute, "take cancel begin give add set drain free lease release state", "WRONGTYPE"},
			{[]string{"SET s 1.5 PX 60000"}, time.Minute, "take cancel add set drain free lease release state", "WRONGTYPE"},
			{[]string{"SET s 3", "SET taken x"}, time.Minute, "lease renew release update look state set", "WRONGTYPE"},
		} {
			p := newPlayer(t, rdb)
			p.Do(tc.given...)
			for script := range strings.FieldsSeq(tc.scripts) {
				scripttest.Unchanged(t, mini, script, tc.reply, func() ([]any, error) { return p.Eval(tc.left, all[script]) })
			}
		}
	})
}

func TestLeasingScripts(t *testing.T) {
	const past, soon, never = "5", "99999999999999", "922337203685477" // in ms
	playAll(t, []table{
		{"nothing there", nil, []step{
			{"lease 1000 PUBLISH c a", "NOPERMITS", "", ""},
			{"renew 1000 a", "0", "", ""},
			{"release PUBLISH c a", "0", "", ""},
			{"update 1000 a", "0", "", ""},
			{"look a", "0", "", ""},
			{"state", "1 0 0", "", ""},
		}},
		{"granted", []string{"SET s 3"}, []step{
			{"lease 9000 PUBLISH c a b", "1 9000", "", "s=1 | taken=[a b]"},
			{"renew 20000 a b", "1 20000", "", "s=1 | taken=[a b]"},
			{"state", "1 1 2", "", "s=1 | taken=[a b]"},
			{"release PUBLISH c a b", "1", "0", "s=3"},
			{"renew 20000 a b", "0", "", "s=3"},
		}},
		{"another's", []string{"SET s 1", "ZADD taken " + soon + " x"}, []step{
			{"lease 9000 PUBLISH c a b d", "NOPERMITS", "", "s=1 | taken=[x]"},
			{"renew 9000 a", "0", "", "s=1 | taken=[x]"},
			{"release PUBLISH c a", "0", "", "s=1 | taken=[x]"},
			{"update 1000 a", "0", "", "s=1 | taken=[x]"},
			{"look a", "0", "", "s=1 | taken=[x]"},
		}},
		{"taken for ever", []string{"SET s 0", "ZADD taken " + never + " x"}, []step{
			{"lease 9000 PUBLISH c a", "0 -1", "", "s=0 | taken=[x]"},
			{"look x", "1 -1", "", "s=0 | taken=[x]"},
			{"renew 9000 x", "1 1000000000000", "", "s=0 | taken=[x]"},
			{"state", "1 0 1", "", "s=0 | taken=[x]"},
			{"release PUBLISH c x", "1", "0", "s=1"},
		}},
		{"over", []string{"SET s 0", "ZADD taken " + past + " x " + past + " y"}, []step{
			{"state", "1 2 0", "", "s=0 | taken=[x y]"},
			{"renew 9000 x", "0", "", "s=0 | taken=[x y]"},
			{"update 9000 x", "0", "", "s=0 | taken=[x y]"},
			{"look x", "0", "", "s=0 | taken=[x y]"},
			{"release PUBLISH c x", "0", "", "s=1 | taken=[y]"},
			{"lease 9000 PUBLISH c a b", "1 9000", "", "s=0 | taken=[a b]"},
		}},
		{"over, partly taken back", []string{"SET s 2", "ZADD taken " + past + " a"}, []step{
			{"lease 9000 PUBLISH c a b", "1 9000", "", "s=1 | taken=[a b]"},
		}},
		{"partly released", []string{"SET s 1", "ZADD taken " + soon + " a"}, []step{
			{"renew 9000 a b", "0", "", "s=1 | taken=[a]"},
			{"release PUBLISH c a b", "0", "", "s=2"},
		}},
		{"count gone", []string{"ZADD taken " + soon + " a"}, []step{
			{"lease 9000 PUBLISH c b", "NOPERMITS", "", "taken=[a]"},
			{"set 0:1 3 1 PUBLISH c", "1 2", "", "s=2 | calls=map[0:1 1 2] for 10m0s | taken=[a]"},
			{"release PUBLISH c a", "1", "0", "s=3 | calls=map[0:1 1 2] for 10m0s"},
		}},
		{"released where the count is gone", []string{"ZADD taken " + soon + " a"}, []step{
			{"release PUBLISH c a", "1", "0", ""},
		}},
		{"fewer than are taken", []string{"SET s 1", "ZADD taken " + soon + " a " + soon + " b"}, []step{
			{"set 0:1 1 0 PUBLISH c", "1 -1", "", "s=-1 | calls=map[0:1 1 -1] for 10m0s | taken=[a b]"},
			{"release PUBLISH c a", "1", "0", "s=0 | calls=map[0:1 1 -1] for 10m0s | taken=[b]"},
			{"lease 9000 PUBLISH c d e", "NOPERMITS", "", "s=0 | calls=map[0:1 1 -1] for 10m0s | taken=[b]"},
		}},
		{"memory is short: no new permit is granted, and those that are held are renewed and released", []string{"SET s 4"}, []step{
			{"lease 9000 PUBLISH c a", "1 9000", "", "s=3 | taken=[a]"},
			{"memory is short", "", "", ""},
			{"take 0:1 1", "OOM", "", "s=3 | taken=[a]"},
			{"set 0:2 9 0 PUBLISH c", "OOM", "", "s=3 | taken=[a]"},
			{"lease 9000 PUBLISH c b", "OOM", "", "s=3 | taken=[a]"},
			{"renew 9000000 a", "1 9000000", "", "s=3 | taken=[a]"},
			{"update 9000000 a", "1", "", "s=3 | taken=[a]"},
			{"free", "1 3", "", "s=3 | taken=[a]"},
			{"state", "1 3 1", "", "s=3 | taken=[a]"},
			{"release PUBLISH c a", "1", "0", "s=4"},
			{"cancel 0:3 1 PUBLISH c", "0 0", "", "s=4 | calls=map[0:3 0 0] for 10m0s"},
			{"add 0:4 1 PUBLISH c", "1 5", "", "s=5 | calls=map[0:4 1 5] for 10m0s"},
			{"drain 0:5", "1 5", "", "s=0 | calls=map[0:5 1 5] for 10m0s"},
		}},
		{"with a time to live", []string{"SET s 3 PX 60000"}, []step{
			{"lease 9000 PUBLISH c a", "1 9000", "", "s=2 for 1m0s | taken=[a] for 1m0s"},
			{"update 20000 a", "1", "", "s=2 for 1m0s | taken=[a] for 1m0s"},
			{"release PUBLISH c a", "1", "0", "s=3 for 1m0s"},
		}},
	})
}

// A script that fails midway has done nothing, whichever command fails.
func TestFailingMidway(t *testing.T) {
	mini := redistest.Mini(t)
	rdb := mini.Client()
	newPlayer(t, rdb).AllOrNothing(mini, func() string { return sum(t, rdb) }, [][]string{
		{"SET s 3", "take 0:2 2"},
		{"SET s 3", "HSET calls 0 1~1~0", "PEXPIRE calls 600000", "take 0:2 2"},
		{"SET s 1", "HSET calls 0 2~1~0", "PEXPIRE calls 600000", "cancel 0:2 2 PUBLISH c"},
		{"cancel 0:2 2 PUBLISH c"},
		{"SET s 1", "add 0:2 2 PUBLISH c"},
		{"set 0:2 2 1 PUBLISH c"},
		{"SET s 5", "drain 0:2"},
		{"SET s 5", "lease 9000 PUBLISH c a b"},
		{"SET s 0", "ZADD taken 5 x 5 y", "lease 9000 PUBLISH c a"},
		{"SET s 0", "ZADD taken 5 a 5 y", "lease 9000 PUBLISH c a b"},
		{"SET s 1", "ZADD taken 99999999999999 a 99999999999999 b", "release PUBLISH c a b"},
		{"SET s 2", "lease 60000 PUBLISH c a", "renew 600000 a"},
	})
}

// sum returns the number of permits in all, taken or free. It also returns whether a is taken, and
// the record of the call.
func sum(t testing.TB, rdb *redis.Client) string {
	scripttest.Ends(t, rdb, "calls")
	ctx := t.Context()
	free, _ := rdb.Get(ctx, "s").Int64()
	taken := rdb.ZCard(ctx, "taken").Val()
	return fmt.Sprintf("%d in all, a %v, call %q", free+taken,
		rdb.ZScore(ctx, "taken", "a").Val() > 5, rdb.HGet(ctx, "calls", "0").Val())
}
