// What is sent again: the work of this version, or that of another which was saved.

package main

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/ceiling"
	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/lockhash"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/shards"
)

// work is one kind of work, as the calls of scripts that Holdfast sends for it.
type work struct {
	Name  string
	Begin [][]string // commands that come first in each round, and are not counted
	Calls []ceiling.Sent
	Ops   int  // how many operations the calls are
	Anew  bool // each pass is about other names, since no call counts twice
}

const (
	from    = "scripts:r:" // what names begin with in what is recorded
	tries   = 64           // names, or pairs
	uuid    = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	another = "7ba7b811-9dad-11d1-80b4-00c04fd430c8"
	lease   = 10 * time.Minute
	many    = 100 // renewals of one call
)

// thisVersions returns the work of this version. The server is empty, and nothing else uses it.
func thisVersions(ctx context.Context, addr string) ([]*work, error) {
	all := []*work{turns(), queued(), looks(), renewals(), renewalsOfMany()}
	for _, recorded := range []struct {
		name    string
		callers int
		anew    bool
		pair    func(ctx context.Context, c *holdfast.Client, name string, i int) error
	}{
		{"Mutex: pair", 1, false, mutexPair},
		{"Mutex: pair in bundles", ceiling.Callers, false, mutexPair},
		{"RWMutex: pair", 1, false, writePair},
		{"RWMutex: pair of a reader", 1, false, readPair},
		{"Semaphore: pair", 1, true, semaphorePair},
		{"PermitSemaphore: pair", 1, false, permitPair},
		{"Once: work", 1, true, onceWork},
		{"Shards: a member comes, takes 64, leaves", 1, true, membership},
		{"Limiter: a decision", 1, false, decision},
		{"Limiter: a decision in bundles", 32, false, decision},
	} {
		n := max(tries, recorded.callers)
		use := func(ctx context.Context, c *holdfast.Client, name string) error {
			return inParallel(recorded.callers, n, func(i int) error { return recorded.pair(ctx, c, name, i) })
		}
		calls, err := ceiling.Record(ctx, addr, from, "scripts:w:", use)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", recorded.name, err)
		}
		if recorded.callers > 1 {
			n *= perCaller
		}
		all = append(all, &work{Name: recorded.name, Calls: calls, Ops: n, Anew: recorded.anew})
	}
	return all, nil
}

// perCaller is how many pairs each of many goroutines does: at the end fewer of them are at work.
const perCaller = 16

// inParallel does the work of all names, by that many goroutines.
func inParallel(callers, names int, do func(i int) error) error {
	var all sync.WaitGroup
	failed := make([]error, callers)
	times := 1
	if callers > 1 {
		times = perCaller
	}
	for caller := range callers {
		all.Go(func() {
			for i := caller; i < names; i += callers {
				for range times {
					failed[caller] = errors.Join(failed[caller], do(i))
				}
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

func mutexPair(ctx context.Context, c *holdfast.Client, name string, i int) error {
	l, err := c.Mutex(fmt.Sprint(name, i)).Lock(ctx)
	if err != nil {
		return err
	}
	return l.Release(ctx)
}

func writePair(ctx context.Context, c *holdfast.Client, name string, i int) error {
	l, err := c.RWMutex(fmt.Sprint(name, i)).Lock(ctx)
	if err != nil {
		return err
	}
	return l.Release(ctx)
}

func readPair(ctx context.Context, c *holdfast.Client, name string, i int) error {
	l, err := c.RWMutex(fmt.Sprint(name, i)).RLock(ctx)
	if err != nil {
		return err
	}
	return l.Release(ctx)
}

func semaphorePair(ctx context.Context, c *holdfast.Client, name string, i int) error {
	s := c.Semaphore(name)
	if i == 0 {
		if _, err := s.TrySetPermits(ctx, 10); err != nil {
			return err
		}
	}
	if err := s.Acquire(ctx, 1); err != nil {
		return err
	}
	return s.Release(ctx, 1)
}

func permitPair(ctx context.Context, c *holdfast.Client, name string, i int) error {
	s := c.PermitSemaphore(fmt.Sprint(name, i))
	if _, err := s.TrySetPermits(ctx, 10); err != nil {
		return err
	}
	l, err := s.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	return l.Release(ctx)
}

func onceWork(ctx context.Context, c *holdfast.Client, name string, i int) error {
	return once.Do(ctx, c.Once(name), fmt.Sprint(i), func(context.Context) error { return nil })
}

// membership is that of the only member, which leaves once it has all shards.
func membership(ctx context.Context, c *holdfast.Client, name string, i int) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	var has atomic.Int64
	err := c.Shards(fmt.Sprint(name, i), 64).Run(ctx, func(ctx context.Context, _ *shards.Shard) error {
		if has.Add(1) == 64 {
			leave()
		}
		<-ctx.Done()
		return nil
	})
	if has.Load() == 64 {
		return nil
	}
	return err
}

// decision is below the limit. All are of one limit: an id that comes again is no longer among the last three.
func decision(ctx context.Context, c *holdfast.Client, name string, _ int) error {
	_, err := c.Limiter(name, limiter.Rate(1_000_000, time.Second)).Allow(ctx, 1)
	return err
}

// mutexRules are those of a Mutex.
var mutexRules = lockhash.NewRules("mutex", 2500*time.Millisecond, 3)

func queue(i int) *lockhash.Queue {
	return &lockhash.Queue{Hash: lockhash.Hash(fmt.Sprint(from, i)), Rules: mutexRules}
}

// turns is a lock that eight processes want: each release takes the process's next place, and hands the lock over.
func turns() *work {
	w := &work{Name: "Mutex: a turn of 8 processes"}
	q, processes := queue(0), 8
	at := q.At()
	owner := func(i int) hold.Owner {
		return hold.NewOwner(fmt.Sprintf("%08x%s", i%processes+1, uuid[8:]), 1)
	}
	w.Begin = append(w.Begin, []string{"DEL", at.Hash, at.Queue, at.Alive},
		[]string{"HSET", at.Hash, owner(0).String(), "1"}, []string{"PEXPIRE", at.Hash, "5000"})
	for i := 1; i < processes; i++ {
		call := q.Enter(hold.Entry{Owner: owner(i), Length: lease, Ask: line.Ask{InQueue: true}, Publish: "PUBLISH"}, lockhash.InTurn)
		w.Begin = append(w.Begin, commandOf(call, true))
	}
	for i := range processes {
		w.add(q.ReleaseAnd(owner(i), "PUBLISH", hold.Owner{}, owner(i)))
	}
	w.Ops = processes
	return w
}

// queued is a lock that two processes want, one caller each: the one that waits takes a place, has the lock handed to
// it, and asks for the whole lease.
func queued() *work {
	w := &work{Name: "Mutex: enter, release, enter"}
	for i := range tries {
		q := queue(i)
		at := q.At()
		one, two := hold.NewOwner(uuid, int64(2*i+1)), hold.NewOwner(another, int64(2*i+2))
		w.Begin = append(w.Begin, []string{"DEL", at.Hash, at.Queue, at.Alive}, []string{"HSET", at.Hash, one.String(), "1"})
		w.Begin = append(w.Begin, []string{"PEXPIRE", at.Hash, "60000"})
		for range 2 {
			enter := func() *conn.Call {
				return q.Enter(hold.Entry{Owner: two, Length: time.Minute, Ask: line.Ask{InQueue: true}, Publish: "PUBLISH"}, lockhash.InTurn)
			}
			w.add(enter())
			w.add(q.Release(one, "PUBLISH"))
			w.add(enter())
			one, two = two, one
			w.Ops++
		}
	}
	return w
}

// looks is a waiter's poll.
func looks() *work {
	w := &work{Name: "Mutex: look", Ops: tries}
	for i := range tries {
		q, at := queue(i), queue(i).At()
		waits := hold.NewOwner(another, int64(i+1))
		w.Begin = append(w.Begin, []string{"DEL", at.Hash, at.Queue, at.Alive},
			[]string{"HSET", at.Hash, hold.NewOwner(uuid, int64(i+1)).String(), "1"}, []string{"PEXPIRE", at.Hash, "60000"},
			commandOf(q.Enter(hold.Entry{Owner: waits, Length: time.Minute, Ask: line.Ask{InQueue: true}, Publish: "PUBLISH"}, lockhash.InTurn), true))
		w.add(q.LookIn(waits))
	}
	return w
}

func renewals() *work {
	w := &work{Name: "a renewal alone", Ops: 20 * many}
	for i := range w.Ops {
		w.held(i)
		w.add(lockhash.Hash(fmt.Sprint(from, i)).Renew(hold.NewOwner(uuid, int64(i+1)), lease))
	}
	return w
}

func renewalsOfMany() *work {
	w := &work{Name: "a renewal, 100 in a script", Ops: 200 * many}
	for first := 0; first < w.Ops; first += many {
		call := &conn.Call{Script: lockhash.Hash("").RenewMany(), Args: []any{lease.Milliseconds()}}
		for i := first; i < first+many; i++ {
			w.held(i)
			call.Keys = append(call.Keys, fmt.Sprint(from, i))
			call.Args = append(call.Args, hold.NewOwner(uuid, int64(i+1)).String())
		}
		w.add(call)
	}
	return w
}

// held has a lock held when a round begins.
func (w *work) held(i int) {
	key := fmt.Sprint(from, i)
	w.Begin = append(w.Begin, []string{"HSET", key, hold.NewOwner(uuid, int64(i+1)).String(), "1"},
		[]string{"PEXPIRE", key, fmt.Sprint(lease.Milliseconds())})
}

func (w *work) add(call *conn.Call) {
	w.Calls = append(w.Calls, ceiling.Sent{Words: commandOf(call, false), At: time.Now(), Source: call.Script.Source()})
}

// commandOf returns the command of a call, which may run until an hour has passed.
func commandOf(call *conn.Call, full bool) []string {
	sum := sha1.Sum([]byte(call.Script.Source()))
	words := []string{"EVALSHA", hex.EncodeToString(sum[:]), fmt.Sprint(len(call.Keys))}
	if full {
		words[0], words[1] = "EVAL", call.Script.Source()
	}
	words = append(words, call.Keys...)
	notAfter := time.Now().Add(30 * time.Minute)
	words = append(words, fmt.Sprint(notAfter.UnixMicro()))
	for _, arg := range call.Args {
		switch a := arg.(type) {
		case *string:
			words = append(words, *a)
		case *int64:
			words = append(words, fmt.Sprint(*a))
		default:
			words = append(words, fmt.Sprint(a))
		}
	}
	return words
}

// named returns the words for things of another name.
func named(words []string, to string) []string {
	other := make([]string, len(words))
	for i, word := range words {
		other[i] = strings.ReplaceAll(word, from, to)
	}
	return other
}
