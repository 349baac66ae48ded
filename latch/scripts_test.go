// These tests run each script on its own, and check what it answers and what it leaves. Each step runs twice, as if
// its reply were lost. The latch may be absent, set, counted, over, or foreign. The script may run late or without
// memory, or may fail midway.

package latch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/scripttest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// asker plays the scripts. The keys are l, calls and generations.
type asker struct{ scripttest.Player }

func newAsker(t testing.TB, rdb *redis.Client) *asker {
	rdb.FlushAll(t.Context())
	a := &asker{}
	a.Player = scripttest.Player{T: t, RDB: rdb, Parts: a.parts, Words: words, Left: a.state}
	return a
}

type step scripttest.Step

func words(_ string, reply []any) string { return scripttest.TextAnew(reply, nil) }

// parts returns the script, the keys and the arguments of a command. A call that counts once is written track:call.
//
//	set <call> <n> <life in ms>, countdown <call>, delete <call>, look <generation, or newest>, count
func (a *asker) parts(command string) (*conn.Script, []string, []any) {
	const tenMinutes = 600_000
	w := strings.Fields(command)
	all, once := []string{"l", "calls", "generations"}, []any{}
	if len(w) > 1 {
		track, call, _ := strings.Cut(w[1], ":")
		once = []any{track, call, tenMinutes}
	}
	switch w[0] {
	case "set":
		return setScript, all, append(once, w[2], w[3], "PUBLISH", "c")
	case "countdown":
		return countDownScript, all, append(once, "PUBLISH", "c")
	case "delete":
		return deleteScript, all, append(once, "PUBLISH", "c")
	case "look":
		if w[1] == "newest" {
			w[1] = a.newest()
		}
		return lookScript, []string{"l", "generations"}, []any{w[1]}
	default:
		return countScript, []string{"l"}, nil
	}
}

// newest returns the number of the newest generation.
func (a *asker) newest() string {
	members := a.RDB.ZRange(context.Background(), "generations", -1, -1).Val()
	if len(members) == 0 {
		return "0"
	}
	return strings.Split(members[0], ":")[1]
}

// state returns the count, how each generation that is recorded stands, oldest first, for example "zdo", and the
// ledger.
func (a *asker) state() string {
	ctx := context.Background()
	count, err := a.RDB.Get(ctx, "l").Result()
	if err != nil {
		count = "-"
	}
	scripttest.Ends(a.T, a.RDB, "generations", "calls")
	var states string
	for _, m := range a.RDB.ZRange(ctx, "generations", 0, -1).Val() {
		states += m[:1]
	}
	return fmt.Sprintf("%s %s %v", count, states, a.RDB.HGetAll(ctx, "calls").Val())
}

func TestScripts(t *testing.T) { scripttest.OnServers(t, testScripts) }

func testScripts(t *testing.T, rdb *redis.Client) {
	for name, steps := range map[string][]step{
		"nothing there": {
			{"look 0", "1", "", "-  map[]"},
			{"look 7", "3", "", "-  map[]"},
			{"count", "1 0", "", "-  map[]"},
			{"countdown 0:1", "1 0", "", "-  map[0:1 1 0]"},
			{"delete 0:2", "0 0", "", "-  map[0:2 0 0]"},
		},
		"to zero": {
			{"set 0:1 2 0", "1 0", "", "2 o map[0:1 1 0]"},
			{"set 0:2 3 0", "0 0", "", "2 o map[0:2 0 0]"},
			{"count", "1 2", "", "2 o map[0:2 0 0]"},
			{"look 0", "0 new -1", "", "2 o map[0:2 0 0]"},
			{"countdown 0:3", "1 1", "", "1 o map[0:3 1 1]"},
			{"look newest", "0 new -1", "", "1 o map[0:3 1 1]"},
			{"countdown 1:4", "1 0", "", "- z map[0:3 1 1 1:4 1 0]"},
			{"countdown 0:2", "0", "", "- z map[0:3 1 1 1:4 1 0]"}, // overtaken
			{"look newest", "1", "", "- z map[0:3 1 1 1:4 1 0]"},
			{"look 0", "1", "", "- z map[0:3 1 1 1:4 1 0]"},
		},
		"deleted": {
			{"set 0:1 2 0", "1 0", "", "2 o map[0:1 1 0]"},
			{"delete 0:2", "1 0", "", "- d map[0:2 1 0]"},
			{"look newest", "2", "", "- d map[0:2 1 0]"},
			{"look 0", "1", "", "- d map[0:2 1 0]"},
			{"set 0:3 1 0", "1 0", "", "1 do map[0:3 1 0]"},
			{"delete 0:2", "0", "", "1 do map[0:3 1 0]"}, // overtaken
			{"countdown 0:4", "1 0", "", "- dz map[0:4 1 0]"},
		},
		"set by Redisson": {
			{"SET l 2", "", "", ""},
			{"look 0", "0 new -1", "", "2 o map[]"},
			{"set 0:1 2 0", "0 0", "", "2 o map[0:1 0 0]"},
			{"delete 0:2", "1 0", "", "- d map[0:2 1 0]"},
			{"look newest", "2", "", "- d map[0:2 1 0]"},
		},
		"set by Redisson, nobody looks": {
			{"SET l 2", "", "", ""},
			{"countdown 0:1", "1 1", "", "1  map[0:1 1 1]"},
			{"countdown 0:2", "1 0", "", "-  map[0:2 1 0]"},
		},
		"zero and less by Redisson": {
			{"SET l -4", "", "", ""},
			{"look 0", "1", "", "-4  map[]"},
			{"count", "1 0", "", "-4  map[]"},
			{"countdown 0:1", "1 0", "", "-  map[0:1 1 0]"},
		},
		"late": {
			{"late set 0:1 2 0", "-1", "", "-  map[]"},
			{"SET l 1", "", "", ""},
			{"late set 0:1 2 0", "-1", "", "1  map[]"},
			{"late countdown 0:1", "-1", "", "1  map[]"},
			{"late delete 0:1", "-1", "", "1  map[]"},
			{"late look 0", "-1", "", "1  map[]"},
		},
		"memory is short: it cannot be set, but counted down and deleted": {
			{"set 0:1 2 0", "1 0", "", "2 o map[0:1 1 0]"},
			{"memory is short", "", "", ""},
			{"look 0", "0 new -1", "", "2 o map[0:1 1 0]"},
			{"countdown 0:2", "1 1", "", "1 o map[0:2 1 1]"},
			{"delete 0:3", "1 0", "", "- d map[0:3 1 0]"},
			{"set 0:4 2 0", "OOM", "", "- d map[0:3 1 0]"},
			{"countdown 0:5", "1 0", "", "- d map[0:5 1 0]"},
			{"look newest", "2", "", "- d map[0:5 1 0]"},
		},
		"with an end": {
			{"set 0:1 2 60000", "1 0", "", "2 o map[0:1 1 0]"},
			{"countdown 0:2", "1 1", "", "1 o map[0:2 1 1]"},
			{"countdown 0:3", "1 0", "", "- z map[0:3 1 0]"},
		},
	} {
		t.Run(name, func(t *testing.T) { scripttest.Play(&newAsker(t, rdb).Player, steps) })
	}
}

// A generation is known by its number until a hundred other generations have ended.
func TestGenerationsAreForgottenInOrder(t *testing.T) {
	a := newAsker(t, redistest.Mini(t).Client())
	var numbers []string
	for i := range 103 {
		a.Do(fmt.Sprintf("set 0:%d 1 0", 3*i+1))
		numbers = append(numbers, a.newest())
		a.Do(fmt.Sprintf("%s 0:%d", []string{"countdown", "delete"}[i%2], 3*i+2))
	}
	for i, number := range numbers {
		want := []string{"1", "2"}[i%2]
		if i < 3 {
			want = "3"
		}
		redistest.Equal(t, a.Ask(time.Minute, "look "+number), want, "%q, want %q (generation %d)", want, i)
	}
}

// A value of another program stays as it is.
func TestScriptsThatMustDoNothing(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
		for _, given := range []string{"HSET l f v", "SET l x"} {
			a := newAsker(t, rdb)
			a.Do(given)
			for _, c := range []string{"set 0:1 2 0", "countdown 0:1", "delete 0:1", "look 0", "count"} {
				scripttest.Unchanged(t, mini, c, "WRONGTYPE", func() ([]any, error) { return a.Eval(time.Minute, c) })
			}
		}
	})
}

// A script that fails midway has done nothing, or everything but its record. Whichever command
// fails, only the count may be left without an expiry.
func TestFailingMidway(t *testing.T) {
	mini := redistest.Mini(t)
	a := newAsker(t, mini.Client())
	a.AllOrNothing(mini, a.outcome, [][]string{
		{"set 0:2 2 0"},
		{"HSET calls 0 1~1~0", "PEXPIRE calls 600000", "ZADD generations 7 o:7:0", "PEXPIRE generations 90000", "set 0:2 2 60000"},
		{"SET l 2", "ZADD generations 7 o:7:0", "PEXPIRE generations 90000", "countdown 0:2"},
		{"SET l 1", "ZADD generations 7 o:7:0", "PEXPIRE generations 90000", "countdown 0:2"},
		{"SET l 1", "ZADD generations 7 o:7:0", "PEXPIRE generations 90000", "delete 0:2"},
		{"SET l 1", "look 0"},
	})
}

// If neither the expiry can be set nor the generation be taken back, the record of a latch that Redisson has set does
// not stay.
func TestTheRecordDoesNotStayWithoutAnExpiry(t *testing.T) {
	mini := redistest.Mini(t)
	a := newAsker(t, mini.Client())
	a.Do("SET l 3")
	mini.Deny("PEXPIRE", "ZREM")
	reply, err := a.Eval(time.Minute, "look 0")
	mini.Deny()
	if err == nil {
		t.Errorf("answered %v", reply)
	}
	scripttest.Ends(t, a.RDB, "generations")
}

// outcome returns the count, the record of the call, and the answer that a waiter of generation 7
// would get.
func (a *asker) outcome() string {
	a.state() // it fails if an expiry is missing
	ctx := context.Background()
	return a.RDB.Get(ctx, "l").Val() + ", " + a.RDB.HGet(ctx, "calls", "0").Val() + ", " + a.Ask(time.Minute, "look 7")
}
