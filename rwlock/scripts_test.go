// These tests run each script by itself. They check what it answers and leaves in each state of the
// lock, and that a failure inside it leaves nothing without an expiry or an owner.

package rwlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/lockhash"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/scripttest"
)

const (
	me    = "11111111-1111-1111-1111-111111111111:1"
	other = "22222222-2222-2222-2222-222222222222:2"
)

// script is one script as the tests run it, for the owner me.
type script struct {
	name string
	keys []string
	args []any // the arguments from ARGV[2] on
}

var (
	five    = []string{name, tokenKey, readers, writers, waiting}
	release = []any{me, "PUBLISH", channel, prefix}
	quits   = []string{name, readers, writers, waiting}

	lockRun     = script{"lock", five, []any{me, 10000, 60000, prefix, 5, 3000}}
	rlockRun    = script{"rlock", five, []any{me, 10000, "", prefix, 5, 3000}}
	underRun    = script{"rlock", five, []any{me, 10000, other, prefix, -1, 3000}}
	recountRun  = script{"recount", five[:1], []any{me + ":write", 3, 20000}}
	rrecountRun = script{"rrecount", five[:1], []any{me, 3, 20000, prefix}}
	rrecountOne = script{"rrecount", five[:1], []any{me, 1, 0, prefix}}
	renewRun    = script{"renew", five[:1], []any{me + ":write", 20000}}
	rrenewRun   = script{"rrenew", five[:1], []any{me, 20000, prefix}}
	releaseRun  = script{"release", quits, release}
	rreleaseRun = script{"rrelease", quits, release}
	lookRun     = script{"look", five[:1], []any{prefix, me}}
	wlookRun    = script{"look", five[:1], []any{prefix, me + ":write"}}
	stateRun    = script{"state", five[:1], []any{prefix, "0", 256}}
)

var everyScript = []script{
	lockRun, rlockRun, underRun, recountRun, rrecountRun, renewRun, rrenewRun, releaseRun, rreleaseRun, lookRun, stateRun,
}

// source puts a script together as scripts.go does.
func source(t testing.TB, name string) string {
	t.Helper()
	switch hash := lockhash.Hash(""); name {
	case "recount":
		return hash.RecountField("", 0, 0).Script.Source()
	case "renew":
		return hash.RenewField("", 0).Script.Source()
	}
	var all strings.Builder
	for _, part := range []string{"left", "holders", "marks", name} {
		all.WriteString(doctest.Read(t, "rwlock/lua/"+part+".lua"))
	}
	traits := map[string]conn.Trait{"release": conn.Always, "rrelease": conn.Always, "look": conn.Always, "state": conn.Always}
	return conn.NewScript(name, all.String(), traits[name]).Source()
}

func (s script) run(t testing.TB, rdb redis.UniversalClient, notAfter string) ([]any, error) {
	t.Helper()
	reply, err := rdb.Eval(context.Background(), source(t, s.name), s.keys, append([]any{notAfter}, s.args...)...).Result()
	if now, alone := reply.(int64); alone {
		return []any{int64(conn.Done), now, int64(s.args[1].(int))}, err // renew.lua
	}
	full, _ := reply.([]any)
	return full, err
}

// later is one hour after the beginning of a bubble, in ms.
const later = 946688400000

// commands make a state of the lock.
type commands = scripttest.State

var (
	absent      = commands{}
	myWrite     = commands{{"HSET", name, "mode", "write", me + ":write", 1}, {"PEXPIRE", name, 5000}}
	othersWrite = commands{{"HSET", name, "mode", "write", other + ":write", 1}, {"PEXPIRE", name, 5000}}
	myRead      = commands{
		{"HSET", name, "mode", "read", me, 2}, {"PEXPIRE", name, 5000},
		{"SET", key(me, 1), 1, "PX", 4000}, {"SET", key(me, 2), 1, "PX", 4000},
	}
	othersRead = commands{
		{"HSET", name, "mode", "read", other, 1}, {"PEXPIRE", name, 5000}, {"SET", key(other, 1), 1, "PX", 4000},
	}
	zombies = commands{{"HSET", name, "mode", "read", me, 1, other, 3}, {"PEXPIRE", name, 5000}}
	foreign = commands{{"SET", name, "a string", "PX", 5000}}
	plain   = commands{{"HSET", name, other, 1}, {"PEXPIRE", name, 5000}}
	marked  = commands{{"ZADD", writers, 1, other}, {"ZADD", waiting, later, other}, {"PEXPIRE", writers, 3000}, {"PEXPIRE", waiting, 3000}}
	waited  = append(append(commands{}, othersRead...), commands{{"ZADD", writers, 1, me}, {"ZADD", waiting, later, me}, {"PEXPIRE", writers, 3000}, {"PEXPIRE", waiting, 3000}}...)
	younger = commands{{"ZADD", writers, 1, other}, {"ZADD", waiting, later, me, later, other}, {"PEXPIRE", writers, 3000}, {"PEXPIRE", waiting, 3000}}
	both    = append(append(commands{}, myRead...), commands{{"HSET", name, other, 1}, {"SET", key(other, 1), 1, "PX", 4000}}...)
	beside  = append(append(commands{}, othersWrite...), commands{{"HSET", name, me, 2}, {"SET", key(me, 1), 1, "PX", 4000}, {"SET", key(me, 2), 1, "PX", 4000}}...)
	mineTwo = append(append(commands{}, myWrite...), commands{{"HSET", name, other, 1}, {"SET", key(other, 1), 1, "PX", 4000}}...)
)

// endless returns the state with every expiry removed.
func endless(state commands) commands {
	all := append(commands{}, state...)
	for _, c := range state {
		all = append(all, []any{"PERSIST", c[1]})
	}
	return all
}

func key(owner string, i int) string { return fmt.Sprintf("%s%s:rwlock_timeout:%d", prefix, owner, i) }

// same means that a call changes nothing.
const same = "same"

func TestScripts(t *testing.T) {
	read := func(holders ...string) string { return "mode=read " + strings.Join(holders, " ") }
	for _, tc := range []struct {
		what   string
		script script
		state  commands
		reply  string // without the time and the token
		fields string // of the lock: "", same, or sorted
		ttl    int64  // of the lock after it
	}{
		{"absent", lockRun, absent, "1 10000", "mode=write " + me + ":write=1", 10000},
		{"mine", lockRun, myWrite, "1 10000", "mode=write " + me + ":write=1", 10000},
		{"another's", lockRun, othersWrite, "0 5000", same, 5000},
		{"a reader's", lockRun, othersRead, "0 4000", same, 5000},
		{"my own read", lockRun, myRead, "0 4000", same, 5000},
		{"zombies'", lockRun, zombies, "1 10000", "mode=write " + me + ":write=1", 10000},
		{"a plain lock's", lockRun, plain, "0 5000", same, 5000},
		{"a reader's, and I have waited", lockRun, waited, "0 4000", same, 5000},
		{"a reader's, and I have waited", releaseRun, waited, "0", same, 5000},
		// A request may be long on its way. It must not make its owner younger than the owner's own mark, because the other
		// owners wait for that mark.
		{"my mark is older", lockRun, append(append(commands{}, younger...), []any{"ZADD", writers, 0, me}), "1 10000", "mode=write " + me + ":write=1", 10000},
		{"my mark is older", rlockRun, append(append(commands{}, younger...), []any{"ZADD", readers, 0, me}, []any{"PEXPIRE", readers, 3000}),
			"1 10000", read(me + "=1"), 10000},
		{"mine, and another waits", rrecountRun, append(append(commands{}, both...), marked...), "1 20000", read(me+"=3", other+"=1"), 20000},

		{"absent", rlockRun, absent, "1 10000", read(me + "=1"), 10000},
		{"mine", rlockRun, myRead, "1 10000", read(me + "=2"), 10000},
		{"a writer's", rlockRun, othersWrite, "0 5000", same, 5000},
		{"another reader's", rlockRun, othersRead, "1 10000", read(me+"=1", other+"=1"), 10000},
		{"a plain lock's", rlockRun, plain, "0 5000", same, 5000},
		{"under a write hold that is gone", underRun, absent, "0 1", "", -2},
		{"under a write hold", underRun, othersWrite, "1 10000", me + "=1 " + other + ":write=1 mode=write", 10000},
		{"a writer waits", underRun, append(append(commands{}, othersWrite...), marked...), "1 10000", me + "=1 " + other + ":write=1 mode=write", 10000},

		{"absent", recountRun, absent, "0", "", -2},
		{"mine", recountRun, myWrite, "1 20000", "mode=write " + me + ":write=3", 20000},
		{"another's", recountRun, othersWrite, "0", same, 5000},
		{"my own read", recountRun, myRead, "0", same, 5000},
		{"absent", rrecountRun, absent, "0", "", -2},
		{"mine", rrecountRun, both, "1 20000", read(me+"=3", other+"=1"), 20000},
		{"another's", rrecountRun, othersRead, "0", same, 5000},
		{"run out", rrecountRun, zombies, "0", same, 5000},

		{"absent", renewRun, absent, "0", "", -2},
		{"mine", renewRun, myWrite, "1 20000", same, 20000},
		{"another's", renewRun, othersWrite, "0", same, 5000},
		{"absent", rrenewRun, absent, "0", "", -2},
		{"mine", rrenewRun, both, "1 20000", same, 20000},
		{"another's", rrenewRun, othersRead, "0", same, 5000},
		{"run out", rrenewRun, zombies, "0", same, 5000},

		{"another reader's, without end", rlockRun, endless(othersRead), "1 10000", read(me+"=1", other+"=1"), -1},
		{"mine, without end", rlockRun, endless(myRead), "1 10000", same, -1},
		{"mine, without end", rrenewRun, endless(both), "1 20000", same, -1},
		{"mine, without end", rrecountRun, endless(both), "1 20000", read(me+"=3", other+"=1"), -1},
		{"mine, cut by another", rrenewRun, append(append(commands{}, both...), []any{"PEXPIRE", name, 1000}), "1 20000 1000", same, 20000},
		{"mine, without end, to one lease", rrecountOne, endless(both), "1 -1", read(me+"=1", other+"=1"), -1},

		{"absent", releaseRun, absent, "0", "", -2},
		{"mine", releaseRun, myWrite, "1", "", -2},
		{"mine, with a reader under it", releaseRun, mineTwo, "1", read(other + "=1"), 5000},
		{"another's", releaseRun, othersWrite, "0", same, 5000},
		{"a reader's", releaseRun, othersRead, "0", same, 5000},
		{"absent", rreleaseRun, absent, "0", "", -2},
		{"mine", rreleaseRun, myRead, "1", "", -2},
		{"mine and another's", rreleaseRun, both, "1", read(other + "=1"), 5000},
		{"under a write hold", rreleaseRun, beside, "1", other + ":write=1 mode=write", 5000},
		{"run out, like the other", rreleaseRun, zombies, "1", "", -2},
		{"another's", rreleaseRun, othersRead, "0", same, 5000},

		{"absent", lookRun, absent, "1 0 0", "", -2},
		{"a reader", lookRun, myRead, "1 0 2", same, 5000},
		{"a writer", lookRun, myWrite, "1 1 0", same, 5000},
		{"a writer, asked for", wlookRun, myWrite, "1 1 1", same, 5000},
		{"another writer", wlookRun, othersWrite, "1 1 0", same, 5000},
		{"a reader, asked for as a writer", wlookRun, myRead, "1 0 0", same, 5000},
		{"run out", lookRun, zombies, "1 0 0", same, 5000},
		{"a plain lock's", lookRun, plain, "1 0 0", same, 5000},

		{"absent", stateRun, absent, "1 0", "", -2},
		{"a writer", stateRun, myWrite, "1 0 " + me + ":write 1 5000", same, 5000},
		{"a reader", stateRun, myRead, "1 0 " + me + " 2 4000", same, 5000},
		{"a plain lock's", stateRun, plain, "1 0", same, 5000},
	} {
		t.Run(tc.script.name+"/"+tc.what, func(t *testing.T) {
			scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
				tc.state.Put(t, rdb)
				before := scripttest.Hash(t, rdb, name)
				again := ""
				switch {
				case tc.what == "mine, cut by another":
					again = "1 20000" // no longer
				case strings.HasSuffix(tc.script.name, "release"):
					again = "0"
				}
				want := tc.fields
				if want == same {
					want = before
				}
				send := func() string {
					reply, err := tc.script.run(t, rdb, scripttest.Never)
					if err == nil && strings.HasSuffix(tc.script.name, "lock") && len(reply) > 3 {
						reply = reply[:3] // no token
					}
					return scripttest.Text(reply, err)
				}
				left := func() string {
					return fmt.Sprint(scripttest.Hash(t, rdb, name), " for ", rdb.Do(t.Context(), "PTTL", name).Val())
				}
				scripttest.Twice(t, tc.what, tc.reply, again, fmt.Sprint(sorted(want), " for ", tc.ttl), send, left)

				fails := func() error { _, err := tc.script.run(t, rdb, scripttest.Never); sound(t, rdb); return err }
				whole := func() string { return scripttest.Hash(t, rdb, name) }
				if strings.HasSuffix(tc.script.name, "release") {
					whole = nil // at most zombies stay, and a writer sweeps them
				}
				scripttest.Mended(t, mini, func() { tc.state.Put(t, rdb) }, fails, whole, sorted(want))
			})
		})
	}
}

// A script that comes late, or finds another type of value, does nothing and says so.
func TestScriptsThatChangeNothing(t *testing.T) {
	late := []script{lockRun, rlockRun, underRun, recountRun, rrecountRun, renewRun, rrenewRun}
	for _, tc := range []struct {
		scripts          []script
		states           []commands
		notAfter, answer string
	}{
		{late, []commands{absent, myWrite, myRead, othersWrite, othersRead, marked, foreign}, "1", "[-1 "},
		{everyScript, []commands{foreign}, scripttest.Never, "WRONGTYPE"},
	} {
		scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
			for _, s := range tc.scripts {
				for _, state := range tc.states {
					state.Put(t, rdb)
					scripttest.Unchanged(t, mini, s.name, tc.answer, func() ([]any, error) { return s.run(t, rdb, tc.notAfter) })
				}
			}
		})
	}
}

// sound fails the test if a mark counts for ever.
func sound(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	for _, side := range []string{readers, writers} {
		for _, owner := range rdb.ZRange(t.Context(), side, 0, -1).Val() {
			if rdb.ZScore(t.Context(), waiting, owner).Err() != nil {
				t.Errorf("the mark of %s counts for ever", owner)
			}
		}
	}
}

// A release tells the waiters as its last and least important step. If this step fails, the lock is free all the same.
func TestAReleaseThatCannotTellReleases(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
		for s, state := range map[*script]commands{&releaseRun: myWrite, &rreleaseRun: myRead} {
			state.Put(t, rdb)
			disarm := mini.FailCommand("PUBLISH", 1)
			reply, err := s.run(t, rdb, scripttest.Never)
			if !disarm() {
				t.Errorf("%s: nothing was told", s.name)
			}
			if err != nil || reply[0] != int64(1) || rdb.Exists(t.Context(), name).Val() != 0 {
				t.Errorf("%s: %v, %v, and %v is left", s.name, reply, err, scripttest.Hash(t, rdb, name))
			}
		}
	})
}

// A waiter that asks for the first time may then stand behind other waiters of its process, and
// cannot ask again. So its first request leaves no mark: nobody may wait for this waiter.
func TestAFirstRequestLeavesNoMark(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client) {
		rdb.HSet(t.Context(), name, "mode", "write", other+":write", 1)
		for _, s := range []script{lockRun, rlockRun} {
			s.args = append(s.args[:len(s.args)-1:len(s.args)-1], 0)
			if reply, err := s.run(t, rdb, scripttest.Never); err != nil || reply[0] != int64(0) {
				t.Errorf("%s beside a writer: %v, %v", s.name, reply, err)
			}
			redistest.Equal(t, rdb.Exists(t.Context(), readers, writers, waiting).Val(), 0, "%d keys of marks (%s)", s.name)
		}
	})
}
