// This file checks the lock and its queue against a plain model of both.

package fairlock

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/test/queuemodel"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const modelLease = 8 * time.Second

// model is the lock as it should be.
type model struct{ queuemodel.Lock }

// enter returns whether owner is granted the lock, and which owners are to be nudged.
func (m *model) enter(owner string, number int64, wait, follows bool, behind []string) (granted bool, nudge []string) {
	if !m.Waits(owner) && number > 0 && m.Holder != owner {
		nudge = append(nudge, owner)
	}
	if m.Ask(owner, number, follows) {
		return true, append(nudge, m.tend(behind)...)
	}
	if !wait {
		return false, nil
	}
	if number == 0 {
		number = m.number()
	}
	m.Wait(owner, number)
	turn := m.Holder
	if m.Holder == "" {
		turn = m.Queue[0].Owner
	}
	if (m.Holder == "" || !m.Came) && turn != owner && turn[:36] == owner[:36] {
		nudge = append([]string{turn}, nudge...)
	}
	return false, append(nudge, m.tend(behind)...)
}

// number returns the number of a waiter that joins: it is behind all others.
func (m *model) number() int64 {
	number := m.Now * 1000
	if n := len(m.Queue); n > 0 {
		number = max(number, m.Queue[n-1].Number+1)
	}
	if number%10 == 0 {
		number++
	}
	return number
}

func (m *model) tend(behind []string) (lost []string) {
	for _, owner := range behind {
		if !m.Keep(owner) {
			lost = append(lost, owner)
		}
	}
	return lost
}

// check compares the model with Redis.
func (m *model) check(t *rapid.T, rdb *redis.Client, at keys.FairLock) {
	m.Check(t, rdb, at.Hash, at.Queue, at.Alive)
}

// Whatever calls come in whatever order, the lock is in the state of the model, and tokens grow.
func TestModel(t *testing.T) {
	redistest.Sequences(t)
	mini := redistest.Mini(t)
	rdb := mini.Client()
	start := time.Now().Truncate(time.Second)
	rapid.Check(t, func(t *rapid.T) { runModel(t, mini, rdb, start) })
}

func runModel(t *rapid.T, mini *redistest.MiniServer, rdb *redis.Client, start time.Time) {
	ctx := context.Background()
	mini.SetTime(start)
	rdb.FlushAll(ctx)
	at, err := keys.ForFairLock("n")
	if err != nil {
		t.Fatal(err)
	}
	r := newResource(new(engine.Engine), "n", "n", new(hold.Settings))
	m := &model{queuemodel.Lock{Lease: modelLease, Kept: queueLease, Now: start.UnixMilli()}}
	var owners []hold.Owner
	numbers := make(map[string]int64)
	var token, made int64
	for i := range 6 {
		made++
		owners = append(owners, hold.NewOwner([]string{clientA, clientB}[i%2], made))
	}
	renew := func(i int) { // each owner is used only once
		made++
		owners[i] = hold.NewOwner([]string{clientA, clientB}[i%2], made)
	}
	anyone := rapid.IntRange(0, len(owners)-1)

	enter := func(t *rapid.T, wait bool) {
		i := anyone.Draw(t, "owner")
		id := owners[i].String()
		var ask line.Ask
		call := r.Acquire(owners[i], modelLease)
		if wait {
			ask.Seq = numbers[id]
			ask.Follows = rapid.IntRange(0, 9).Draw(t, "follows") == 0
			for k := range owners {
				if k != i && k%2 == i%2 && rapid.Bool().Draw(t, "behind") {
					ask.Behind = append(ask.Behind, owners[k].String())
				}
			}
			call = r.Enter(hold.Entry{Owner: owners[i], Length: modelLease, Ask: ask})
		}
		confirmed := m.Holder == id && m.Came
		args := append([]any{int64(1) << 60}, call.Args...)
		reply, err := rdb.Eval(ctx, call.Script.Source(), call.Keys, args...).Slice()
		if err != nil {
			t.Fatal(err)
		}
		granted, nudge := m.enter(id, ask.Seq, wait, ask.Follows, ask.Behind)
		if (reply[0] == int64(1)) != granted {
			t.Fatalf("reply %v, granted %v", reply, granted)
		}
		told := reply[min(6, len(reply)):]
		if got, want := fmt.Sprint(told), fmt.Sprint(nudge); wait && got != want {
			t.Fatalf("nudged %s, want %s", got, want)
		}
		switch number := reply[3].(int64); {
		case granted && confirmed && number != token:
			t.Fatalf("token %d, was %d", number, token)
		case granted && !confirmed && number <= token:
			t.Fatalf("token %d after %d", number, token)
		case granted:
			token = number
		case wait && numbers[id] == 0:
			numbers[id] = number
		}
		m.check(t, rdb, at)
	}
	t.Repeat(map[string]func(*rapid.T){
		"wait":  func(t *rapid.T) { enter(t, true) },
		"again": func(t *rapid.T) { enter(t, true) },
		"try":   func(t *rapid.T) { enter(t, false) },
		"leave": func(t *rapid.T) {
			i := anyone.Draw(t, "owner")
			call := r.Release(owners[i], "PUBLISH")
			reply, err := rdb.Eval(ctx, call.Script.Source(), call.Keys, append([]any{0}, call.Args...)...).Slice()
			if err != nil {
				t.Fatal(err)
			}
			if held := m.Leave(owners[i].String()); (reply[0] == int64(1)) != held {
				t.Fatalf("reply %v, held %v", reply, held)
			}
			renew(i)
			m.check(t, rdb, at)
		},
		"time": func(t *rapid.T) {
			ms := rapid.SampledFrom([]int64{1, 700, 1000, 4999, 5001, 31000}).Draw(t, "ms")
			m.Pass(ms)
			mini.SetTime(time.UnixMilli(m.Now))
			m.check(t, rdb, at)
		},
	})
}
