// Turns of a lock: none is kept waiting by those that give up, and they go on when the master changes.

package figures

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// gaps notes for how long nobody was in.
type gaps struct {
	mu      sync.Mutex
	inside  int
	left    time.Time // when the last one left; zero before
	longest time.Duration
}

func (g *gaps) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside++; g.inside == 1 && !g.left.IsZero() {
		g.longest = max(g.longest, time.Since(g.left))
	}
}

func (g *gaps) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.left = time.Now()
}

// turn locks, works for 2 ms and releases.
func (g *gaps) turn(ctx context.Context, m holdfast.Locker) bool {
	l, err := m.Lock(ctx)
	if err != nil {
		return false
	}
	g.enter()
	time.Sleep(2 * time.Millisecond)
	g.leave()
	_ = l.Release(context.WithoutCancel(ctx))
	return true
}

// Many callers give up within 20 ms, one is patient. Nobody is ever kept waiting by a lock that nobody has.
func impatientWaiters(t *testing.T) {
	s := redistest.Server(t)
	for _, kind := range lockertest.Kinds {
		if kind.Rival != nil {
			continue // its rival is a kind as well
		}
		prepared := clienttest.OpenClient(t, s.Client(t))
		if kind.Prepare != nil {
			redistest.Must(t, kind.Prepare(t.Context(), prepared, kind.Name))
		}
		var g gaps
		over, stop := context.WithTimeout(t.Context(), 6*time.Second)
		var all sync.WaitGroup
		for range 3 {
			c := clienttest.OpenClient(t, s.Client(t))
			for range 6 {
				all.Go(func() {
					for over.Err() == nil {
						ctx, cancel := context.WithTimeout(over, rand.N(20*time.Millisecond))
						g.turn(ctx, kind.Locker(c, kind.Name))
						cancel()
					}
				})
			}
		}
		patient := 0
		for over.Err() == nil {
			if g.turn(over, kind.Locker(prepared, kind.Name)) {
				patient++
			}
		}
		all.Wait()
		stop()
		verdict(t, fmt.Sprintf("%s, waiters that give up within 20 ms: nobody in", kind.Name), "50 ms at most",
			g.longest <= 50*time.Millisecond, "%v; %d turns of a patient one", g.longest.Round(time.Millisecond), patient)
	}
}

// turnsOf are turns of kinds that callers of two processes take.
var turnsOf = map[string]func(ctx context.Context, c *holdfast.Client) error{
	"Mutex":     func(ctx context.Context, c *holdfast.Client) error { return oneTurn(ctx, c.Mutex("turns")) },
	"FairMutex": func(ctx context.Context, c *holdfast.Client) error { return oneTurn(ctx, c.FairMutex("fair turns")) },
	"RWMutex, writers": func(ctx context.Context, c *holdfast.Client) error {
		return oneTurn(ctx, c.RWMutex("written turns"))
	},
	"Semaphore of 3": func(ctx context.Context, c *holdfast.Client) error {
		if err := c.Semaphore("counted turns").Acquire(ctx, 1); err != nil {
			return err
		}
		time.Sleep(2 * time.Millisecond)
		return c.Semaphore("counted turns").Release(context.WithoutCancel(ctx), 1)
	},
}

func oneTurn(ctx context.Context, m holdfast.Locker) error {
	l, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Millisecond)
	return l.Release(context.WithoutCancel(ctx))
}

// A planned failover behind Sentinel, in the midst of turns of two processes. It may forget what a Semaphore was given back,
// for good: then fewer take turns at once.
func plannedFailover(t *testing.T) {
	s := redistest.Sentinel(t)
	for _, what := range slices.Sorted(maps.Keys(turnsOf)) {
		turn := turnsOf[what]
		over, stop := context.WithCancel(t.Context())
		var turns atomic.Int64
		var all sync.WaitGroup
		counted := clienttest.OpenClient(t, s.Client(t)).Semaphore("counted turns")
		_, _ = counted.TrySetPermits(t.Context(), 3)
		for range 2 {
			c := clienttest.OpenClient(t, s.Client(t))
			for range 3 {
				all.Go(func() {
					for over.Err() == nil {
						if turn(over, c) == nil {
							turns.Add(1)
						}
					}
				})
			}
		}
		time.Sleep(time.Second)
		before := turns.Load()
		time.Sleep(4 * time.Second)
		before = (turns.Load() - before) / 4
		failing := failOver(t, s)
		var seconds []int64
		for range 10 {
			had := turns.Load()
			time.Sleep(time.Second)
			seconds = append(seconds, turns.Load()-had)
		}
		<-failing
		stop()
		all.Wait()
		left, err := counted.Available(t.Context())
		redistest.Check(t, err)
		verdict(t, what+", turns in each second after a planned failover, two processes", "half of before from the third on, for the permits left",
			slices.Min(seconds[2:]) >= before/2*int64(min(left, 3))/3, "%d before; %v; %d permits left", before, seconds, left)
	}
}

// failOver has a failover begin, and returns once the first Sentinel names the new master. The failover ends later,
// when each of them does.
func failOver(t *testing.T, s *redistest.SentinelSet) (ended <-chan struct{}) {
	first := redis.NewSentinelClient(&redis.Options{Addr: s.SentinelAddrs()[0]})
	defer first.Close()
	master := func() string {
		addr, err := first.GetMasterAddrByName(t.Context(), redistest.MasterName).Result()
		redistest.Check(t, err)
		return strings.Join(addr, ":")
	}
	old, over := master(), make(chan struct{})
	go func() {
		defer close(over)
		s.Failover()
	}()
	redistest.Eventually(t, time.Minute, "a new master", func() error {
		if master() == old {
			return errors.New("none yet")
		}
		return nil
	})
	return over
}
