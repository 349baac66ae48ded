// Random faults on random schedules, on virtual time: whatever the network does,
// two never hold at once, tokens grow, and nothing is left.

package holdfast_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// seed makes one simulation alone: go test -run TestSimulation -seed N
var seed = flag.Uint64("seed", 0, "run the simulation of this seed only")

func TestSimulation(t *testing.T) {
	if *seed != 0 {
		play(t, func(t *testing.T, w *world) { simulate(t, w, *seed) })
		return
	}
	for n := range uint64(redistest.CountOfWork(t, 500)) {
		t.Run(fmt.Sprint("seed ", n+1), func(t *testing.T) {
			play(t, func(t *testing.T, w *world) { simulate(t, w, n+1) })
		})
	}
}

// witness is the resource that the lock protects: it sees who is inside.
type witness struct {
	t *testing.T
	w *world

	mu     sync.Mutex
	last   *holdfast.Lease
	grants int
}

// enter is called by whoever has been granted the lock, at once.
func (v *witness) enter(l *holdfast.Lease) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if l.Err() != nil {
		return // it was told before it began
	}
	if v.last != nil && v.last.Owner() != l.Owner() {
		if v.last.Err() == nil {
			v.t.Errorf("at %v: %v is granted, and %v has not ended", v.w.now(), l.Owner(), v.last.Owner())
		}
		if l.Token() <= v.last.Token() {
			v.t.Errorf("at %v: token %d after %d", v.w.now(), l.Token(), v.last.Token())
		}
	}
	v.last = l
	v.grants++
}

func simulate(t *testing.T, w *world, seed uint64) {
	const processes, workers, rounds = 3, 3, 6
	inside := &witness{t: t, w: w}
	dice := newDice(seed)
	var all sync.WaitGroup
	var started []*process
	for range processes {
		p := w.process()
		started = append(started, p)
		p.each(func(sending) redistest.Fault { return dice.fault() })
		for range workers {
			all.Go(func() {
				for range rounds {
					simulateOne(t, p, dice, inside)
				}
			})
		}
	}
	all.Wait()
	for _, p := range started {
		p.each(nil)
	}
	// What is left runs out, or is cleaned up.
	time.Sleep(5 * time.Second)
	synctest.Wait()
	w.wantFree()
	if inside.grants == 0 {
		t.Error("nothing was ever granted")
	}
	if t.Failed() {
		t.Logf("again with: -run TestSimulation -seed %d", seed)
	}
}

// simulateOne waits for the lock for some time, holds it for some time, enters
// it again now and then, and releases it or lets it run out.
func simulateOne(t *testing.T, p *process, dice *dice, inside *witness) {
	option := holdfast.Renewed(dice.between(150*time.Millisecond, 2*time.Second))
	if dice.one(3) {
		option = holdfast.Fixed(dice.between(100*time.Millisecond, time.Second))
	}
	m := p.Mutex(name, option)
	ctx, cancel := context.WithTimeout(context.Background(), dice.between(time.Millisecond, 3*time.Second))
	defer cancel()
	lock := m.Lock
	if dice.one(4) {
		lock = m.TryLock
	}
	l, err := lock(ctx)
	if err != nil {
		if !errors.Is(err, holdfast.ErrBusy) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("lock: %v", err)
		}
		return
	}
	inside.enter(l)
	simulateHold(t, m, l, dice)
	if dice.one(6) {
		cancel() // as a deferred release meets it
	}
	err = l.Release(ctx)
	if err != nil && !errors.Is(err, holdfast.ErrLost) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("release: %v", err)
	}
}

// simulateHold is the work under the lock.
func simulateHold(t *testing.T, m lease.Locker, l *holdfast.Lease, dice *dice) {
	held := l.Context(context.Background())
	pause := func() {
		select {
		case <-time.After(dice.between(0, 400*time.Millisecond)):
		case <-held.Done():
		}
	}
	pause()
	if dice.one(3) {
		ctx, cancel := context.WithTimeout(held, dice.between(time.Millisecond, time.Second))
		defer cancel()
		inner, err := m.Lock(ctx)
		if err == nil {
			pause()
			if err = inner.Release(ctx); err != nil && !errors.Is(err, holdfast.ErrLost) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("inner release: %v", err)
			}
		} else if held.Err() == nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("nested: %v", err)
		}
		pause()
	}
}

// dice decides, from a seed. Goroutines of one instant may throw in any order,
// so that a seed is a schedule more likely than others, not the same one.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{rng: rand.New(rand.NewPCG(seed, 0))} }

func (d *dice) intn(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// one is true once in n.
func (d *dice) one(n int) bool { return d.intn(n) == 0 }

func (d *dice) between(least, most time.Duration) time.Duration {
	return least + time.Duration(d.intn(int(most-least)+1))
}

// fault is what happens to one request: mostly nothing.
func (d *dice) fault() redistest.Fault {
	switch d.intn(30) {
	case 0:
		return redistest.CloseAfterExec
	case 1:
		return redistest.Silence
	case 2:
		return redistest.DropBefore
	case 3:
		return redistest.HalfReply
	case 4:
		return redistest.Duplicate
	case 5:
		return redistest.Delay(d.between(0, 2500*time.Millisecond))
	case 6:
		return redistest.ReplyError("LOADING Redis is loading the dataset in memory")
	case 7, 8, 9:
		return redistest.Delay(d.between(0, 20*time.Millisecond))
	}
	return redistest.Pass
}
