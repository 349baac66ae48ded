// One call renews many leases, and each task has its own outcome, whatever happens to the other
// tasks and to the call.

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// In these scripts the value of a key is its time to live.
const (
	manySource = `
local reply = {1, now}
for i, key in ipairs(KEYS) do
  local ttl = redis.pcall('GET', key)
  if type(ttl) == 'table' then ttl = -3 end
  ttl = tonumber(ttl or -2)
  if ttl ~= tonumber(ARGV[2]) then
    reply[#reply + 1] = i
    reply[#reply + 1] = ttl
  end
end
return reply`
	oneSource = `
local ttl = redis.call('GET', KEYS[1])
return ttl and {1, now, tonumber(ttl)} or {0, now}`
)

var oneScript = conn.NewScript("one", oneSource)

// fakeTask is renewed alone by oneScript, or in a group by the script of its part.
type fakeTask struct {
	renewal.Task
	key   string
	part  Part
	until time.Time
	alone int // how often it was renewed by a call of its own
	told  []Renewed
}

func (f *fakeTask) Key() string                         { return f.key }
func (f *fakeTask) Part() Part                          { return f.part }
func (f *fakeTask) Urgency() (time.Time, time.Duration) { return f.until, f.part.Length / 6 }
func (f *fakeTask) Renewed(r Renewed)                   { f.told = append(f.told, r) }

func (f *fakeTask) Renewal() *conn.Call {
	f.alone++
	return &conn.Call{Script: oneScript, Keys: []string{f.key}, Until: f.until, AnyTime: true}
}

// tasksOf returns tasks for those keys. The script many renews them, until an hour from now.
func tasksOf(many *conn.Script, keys ...string) []*fakeTask {
	until := time.Now().Add(time.Hour)
	var all []*fakeTask
	for _, key := range keys {
		part := Part{Script: many, Length: time.Minute, Until: until}
		all = append(all, &fakeTask{key: key, part: part, until: until})
	}
	return all
}

// send renews the tasks as one batch, and fails t unless each task was told exactly once.
func send(t *testing.T, ctx context.Context, e *Engine, tasks []*fakeTask) {
	t.Helper()
	var batch []renewal.Task
	for _, task := range tasks {
		batch = append(batch, task)
	}
	node, err := e.Conn.Node(t.Context(), "k")
	redistest.Must(t, err)
	(&sender{e: e}).Send(ctx, node, batch, time.Second, 0)
	for _, task := range tasks {
		if len(task.told) != 1 {
			t.Fatalf("%s was told %d times", task.key, len(task.told))
		}
	}
}

// mustHold fails t unless the task was told that time to live, and was renewed alone that many
// times.
func (f *fakeTask) mustHold(t *testing.T, ttl time.Duration, alone int) {
	t.Helper()
	r := f.told[0]
	if r.Err != nil || !r.Held || r.TTL != ttl || r.Short || !r.Sent.Equal(time.Now()) || f.alone != alone {
		t.Errorf("%s: %+v, renewed alone %d times; want held for %v, %d", f.key, r, f.alone, ttl, alone)
	}
}

func TestEachOfAGroupHasItsOwnOutcome(t *testing.T) {
	inBubble(t, func(t *testing.T, e *Engine, s *redistest.MiniServer) {
		many := conn.NewScript("many", manySource)
		rdb := s.Client()
		for _, key := range []string{"held", "next", "alone"} {
			rdb.Set(t.Context(), key, 30_000, 0)
		}
		rdb.Set(t.Context(), "renewed", 60_000, 0) // the full length, so the reply leaves it out
		rdb.Set(t.Context(), "endless", -1, 0)
		rdb.LPush(t.Context(), "wrong", "x")
		tasks := tasksOf(many, "held", "gone", "wrong", "endless", "next", "alone", "renewed")
		tasks[5].part = Part{}
		send(t, t.Context(), e, tasks)

		tasks[0].mustHold(t, 30*time.Second, 0)
		if r := tasks[1].told[0]; r.Err != nil || r.Held || tasks[1].alone != 0 {
			t.Errorf("gone: %+v", r)
		}
		redistest.Is(t, "wrong", tasks[2].told[0].Err, errs.WrongType)
		tasks[3].mustHold(t, -time.Millisecond, 0)
		tasks[4].mustHold(t, 30*time.Second, 0)
		tasks[5].mustHold(t, 30*time.Second, 1)
		tasks[6].mustHold(t, time.Minute, 0)
	})
}

// A task whose lease is over is told so, and the other leases of its group are still renewed.
func TestAGroupIsLateWithTheFirstOfItsLeases(t *testing.T) {
	inBubble(t, func(t *testing.T, e *Engine, s *redistest.MiniServer) {
		s.Client().MSet(t.Context(), "a", 30_000, "over", 30_000, "b", 30_000)
		tasks := tasksOf(conn.NewScript("many", manySource), "a", "over", "b")
		tasks[1].until = time.Now().Add(-time.Second)
		tasks[1].part.Until = tasks[1].until
		send(t, t.Context(), e, tasks)
		tasks[0].mustHold(t, 30*time.Second, 1)
		redistest.Is(t, "over", tasks[1].told[0].Err, errs.Lost)
		tasks[2].mustHold(t, 30*time.Second, 1)
	})
}

// A server that refuses a call with many keys may still accept a call for each key.
func TestAGroupThatIsRefusedIsRenewedOneByOne(t *testing.T) {
	for what, source := range map[string]string{
		"a slot on the move": `return redis.error_reply('TRYAGAIN Multiple keys request during rehashing of slot')`,
		"no rights":          `return redis.error_reply('NOPERM No permissions to access a key')`,
		"a short reply":      `local t = redis.call('TIME') return {1, t[1] * 1000000 + t[2], 1}`,
		"not of the group":   `local t = redis.call('TIME') return {1, t[1] * 1000000 + t[2], 3, 20000}`,
		"out of order":       `local t = redis.call('TIME') return {1, t[1] * 1000000 + t[2], 2, 20000, 1, 30000}`,
	} {
		inBubble(t, func(t *testing.T, e *Engine, s *redistest.MiniServer) {
			t.Log(what)
			s.Client().MSet(t.Context(), "a", 30_000, "b", 20_000)
			tasks := tasksOf(conn.NewScript(what, source), "a", "b")
			send(t, t.Context(), e, tasks)
			tasks[0].mustHold(t, 30*time.Second, 1)
			tasks[1].mustHold(t, 20*time.Second, 1)
		})
	}
}

// If the server did not answer at all, the tasks fail: the scheduler decides when to try again.
// The error is that of the context, even if its end cut a connection on which the request was.
func TestAGroupThatIsNotAnsweredFails(t *testing.T) {
	for _, sent := range []bool{false, true} {
		inBubble(t, func(t *testing.T, e *Engine, s *redistest.MiniServer) {
			ctx, cancel := context.WithCancel(t.Context())
			if !sent {
				cancel()
			}
			s.Before(func(name string) {
				if strings.HasPrefix(name, "EVAL") {
					cancel()
					time.Sleep(time.Second) // the answer would come after the cut
				}
			})
			tasks := tasksOf(conn.NewScript("many", manySource), "a", "b")
			send(t, ctx, e, tasks)
			for _, task := range tasks {
				if !errors.Is(task.told[0].Err, context.Canceled) || task.alone != 0 {
					t.Errorf("sent: %v: %s: %+v, renewed alone %d times", sent, task.key, task.told[0], task.alone)
				}
			}
		})
	}
}

// The tasks of a group share script, length and slot. A task that would be the only one of its
// group is renewed alone.
func TestDivide(t *testing.T) {
	x, y := conn.NewScript("x", "x"), conn.NewScript("y", "y")
	var batch []renewal.Task
	for _, one := range []struct {
		script *conn.Script
		length time.Duration
		key    string
	}{
		{x, 1, "1a"}, {nil, 1, "1none"}, {y, 1, "1b"}, {x, 2, "1c"}, {x, 1, "2d"},
		{x, 1, "1e"}, {y, 1, "1f"}, {x, 1, "3g"}, {x, 2, "1h"}, {x, 1, "2i"},
	} {
		batch = append(batch, &fakeTask{key: one.key, part: Part{Script: one.script, Length: one.length}})
	}
	groups, alone := new(scratch).divide(batch, func(key string) int { return int(key[0]) })
	var got []string
	for _, g := range groups {
		var keys []string
		for _, m := range g {
			keys = append(keys, m.task.Key())
		}
		slices.Sort(keys)
		got = append(got, strings.Join(keys, " "))
	}
	slices.Sort(got)
	if want := []string{"1a 1e", "1b 1f", "1c 1h", "2d 2i"}; !slices.Equal(got, want) {
		t.Errorf("groups %q, want %q", got, want)
	}
	var left []string
	for _, task := range alone {
		left = append(left, task.Key())
	}
	if want := []string{"1none", "3g"}; fmt.Sprint(left) != fmt.Sprint(want) {
		t.Errorf("alone: %q, want %q", left, want)
	}
}

// A call renews no more than maxGroup leases, so that the server can serve others between two calls. A process that
// holds very many leases builds such calls all the time, so a call allocates nothing for each task.
func TestACallForManyAllocatesNothingForEach(t *testing.T) {
	var batch []renewal.Task
	for _, task := range tasksOf(conn.NewScript("many", manySource), slices.Repeat([]string{"k"}, renewal.MaxBatch+1)...) {
		batch = append(batch, task)
	}
	r := new(scratch)
	groups, alone := r.divide(batch, func(string) int { return 0 })
	if len(groups) != renewal.MaxBatch/maxGroup || len(groups[0]) != maxGroup || len(alone) != 1 {
		t.Errorf("%d groups, the first of %d, %d tasks alone", len(groups), len(groups[0]), len(alone))
	}
	r.clear()
	allocs := testing.AllocsPerRun(10, func() {
		groups, _ := r.divide(batch, func(string) int { return 0 })
		call := r.call(groups[0], "client")
		call.Reply.Numbers = []int64{conn.Done, 1}
		for _, task := range batch {
			task.(*fakeTask).told = task.(*fakeTask).told[:0]
		}
		if left := groups[0].answer(call, nil); len(left) != 0 {
			t.Errorf("%d of them were not told", len(left))
		}
		r.clear()
	})
	// What other goroutines of the process allocate is counted too.
	if allocs > renewal.MaxBatch/20 {
		t.Errorf("%.0f allocations for %d tasks", allocs, len(batch))
	}
}
