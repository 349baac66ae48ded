// These tests run several processes on real servers: nobody is in with a writer, nobody starves,
// and a process that dies blocks the others for no longer than its lease.

package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// Another server, outside the lock, counts who is inside.
var (
	enterScript = redis.NewScript(`
		local readers = tonumber(redis.call('GET', 'readers') or 0)
		local writers = tonumber(redis.call('GET', 'writers') or 0)
		if writers > 0 or ARGV[1] == 'writers' and readers > 0 then redis.call('INCR', 'overlaps') end
		redis.call('INCR', 'entered')
		return redis.call('INCR', ARGV[1])`)
	leaveScript = redis.NewScript(`return redis.call('DECR', ARGV[1])`)
)

// runWorker is one of the processes of TestNobodyIsInWithAWriter.
func runWorker(c *redistest.ChildContext) {
	locks := redis.NewClient(&redis.Options{Addr: os.Getenv("LOCKS")})
	defer locks.Close()
	record := redis.NewClient(&redis.Options{Addr: os.Getenv("RECORD"), MaxRetries: -1})
	defer record.Close()
	client := holdfast.New(locks)
	defer client.Close()
	share, _ := strconv.Atoi(os.Getenv("SHARE"))
	m := client.RWMutex(name)
	c.Say("ready")
	c.Next()

	var left atomic.Int64
	left.Store(int64(share))
	var wg sync.WaitGroup
	for range 25 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := visit(c, m.RLock, m.Lock, record); err != nil {
					c.Say("error %v", err)
				}
			}
		})
	}
	wg.Wait()
	c.Say("done")
}

type locking = func(context.Context) (*lease.Lease, error)

// visit enters as a reader or, once in ten times, as a writer.
func visit(ctx context.Context, rlock, lock locking, record redis.UniversalClient) error {
	f, side := rlock, "readers"
	if rand.N(10) == 0 {
		f, side = lock, "writers"
	}
	l, err := f(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		enterScript.Run(ctx, record, nil, side).Err(),
		leaveScript.Run(ctx, record, nil, side).Err(),
		l.Release(ctx),
	)
}

func TestNobodyIsInWithAWriter(t *testing.T) {
	locks, record := redistest.Server(t), redistest.Server(t)
	const processes = 4
	share := redistest.CountOfWork(t, 100_000) / processes
	var children []*redistest.ChildProc
	for range processes {
		children = append(children, redistest.Start(t, "worker", map[string]string{
			"LOCKS": locks.Addr(), "RECORD": record.Addr(), "SHARE": strconv.Itoa(share),
		}))
	}
	for _, c := range children {
		c.Expect("ready")
	}
	started := time.Now()
	for _, c := range children {
		c.Send("go")
	}
	for _, c := range children {
		for {
			line, ok := c.TryLine(3 * time.Minute)
			if !ok {
				t.Fatal("a worker says nothing")
			}
			if line == "done" {
				break
			}
			t.Error(line)
		}
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	rate := float64(share*processes) / time.Since(started).Seconds()
	counts := record.Admin().MGet(t.Context(), "entered", "overlaps", "readers", "writers").Val()
	if got, want := fmt.Sprint(counts), fmt.Sprintf("[%d <nil> 0 0]", share*processes); got != want {
		t.Errorf("entered, overlaps, inside: %s, want %s", got, want)
	}
	t.Logf("figure: %d operations of %d processes, one in ten a write: 0 overlaps, %.0f/s", share*processes, processes, rate)
	redistest.LeftBehind(t, locks.Admin(), "redisson_lock_token:")
}

// clients returns several Clients, which are separate processes to Redis.
func clients(t *testing.T, s *redistest.Proc, n int) (all []*holdfast.Client) {
	t.Helper()
	for range n {
		c := holdfast.New(s.Client(t))
		t.Cleanup(func() { c.Close() })
		all = append(all, c)
	}
	return all
}

// loop starts this many goroutines on each Client. Each goroutine enters again and again, and stays
// in for the length of the section, until the test calls the returned function. begun counts the
// sections.
func loop(t *testing.T, cs []*holdfast.Client, goroutines int, section time.Duration, side func(*holdfast.Client) locking) (begun *atomic.Int64, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	begun = new(atomic.Int64)
	var wg sync.WaitGroup
	for _, c := range cs {
		f := side(c)
		for range goroutines {
			wg.Go(func() {
				for ctx.Err() == nil {
					l, err := f(context.Background())
					if err != nil {
						t.Error(err)
						return
					}
					begun.Add(1)
					pause(section)
					if err := l.Release(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	return begun, func() {
		cancel()
		wg.Wait()
	}
}

// pause is the work of a section.
func pause(d time.Duration) { <-time.After(d) }

func reading(c *holdfast.Client) locking { return c.RWMutex(name).RLock }
func writing(c *holdfast.Client) locking { return c.RWMutex(name).Lock }

// waits reports whether anybody has left a mark in one of the keys readers and writers.
func waits(t *testing.T, s *redistest.Proc, marks string) bool {
	t.Helper()
	n, err := s.Admin().ZCard(t.Context(), marks).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// ask calls f, and returns as soon as its mark stands, or it has been granted the lock. A wait begins
// then, and not when the caller is about to ask. granted delivers the lease, or nil after an error.
func ask(t *testing.T, s *redistest.Proc, marks string, f locking) (granted chan *lease.Lease) {
	t.Helper()
	granted = make(chan *lease.Lease, 1)
	go func() {
		l, err := f(context.Background())
		if err != nil {
			t.Error(err)
		}
		granted <- l
	}()
	for len(granted) == 0 && !waits(t, s, marks) {
		pause(time.Millisecond)
	}
	return granted
}

func TestAWriterAmongLoopingReaders(t *testing.T) {
	s := redistest.Server(t)
	cs := clients(t, s, 6)
	const perClient = 10
	begun, stop := loop(t, cs[:5], perClient, 5*time.Millisecond, reading)
	defer stop()
	worst := int64(0)
	for range redistest.Count(t, 200) {
		pause(20 * time.Millisecond)
		granted := ask(t, s, writers, writing(cs[5]))
		before := begun.Load()
		l := <-granted
		if l == nil {
			return
		}
		worst = max(worst, begun.Load()-before)
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if worst > 5*perClient+1 {
		t.Errorf("%d sections of readers began before the writer was in, of %d readers", worst, 5*perClient)
	}
	t.Logf("figure: at the worst %d sections of %d looping readers began while a writer waited", worst, 5*perClient)
}

func TestAReaderAmongLoopingWriters(t *testing.T) {
	s := redistest.Server(t)
	cs := clients(t, s, 6)
	begun, stop := loop(t, cs[:5], 4, time.Millisecond, writing)
	defer stop()
	worst := int64(0)
	for range redistest.Count(t, 200) {
		pause(5 * time.Millisecond)
		granted := ask(t, s, readers, reading(cs[5]))
		before := begun.Load()
		l := <-granted
		if l == nil {
			return
		}
		worst = max(worst, begun.Load()-before)
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if worst > 5 {
		t.Errorf("%d sections of writers began before the reader was in", worst)
	}
	t.Logf("figure: at the worst %d sections of 20 looping writers began while a reader waited", worst)
}

// runReader takes the read side and holds it until it is killed.
func runReader(c *redistest.ChildContext) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("LOCKS")})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	if _, err := client.RWMutex(name, holdfast.Renewed(time.Second)).RLock(c); err != nil {
		c.Say("error %v", err)
		return
	}
	c.Say("in")
	c.Next()
}

func TestAKilledReaderBlocksAWriterNoLongerThanItsLease(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t)
	cs := clients(t, s, 3)
	pulse := redistest.FeelPulse(t)
	for range redistest.Count(t, 30) {
		child := redistest.Start(t, "reader", map[string]string{"LOCKS": s.Addr()})
		child.Expect("in")
		// Other readers live, and come and go: their leases are long.
		_, stop := loop(t, cs[:2], 5, 2*time.Millisecond, reading)
		child.Kill()
		killed := time.Now()
		l, err := cs[2].RWMutex(name).Lock(t.Context())
		pulse.Within(t, "the writer's way in after the kill of a reader with a lease of 1s", killed, time.Second+250*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		stop()
	}
}

// Replies are lost on both sides, and each call takes effect once all the same.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t)
	proxy := redistest.Proxy(t, s.Addr())
	c := holdfast.New(proxy.Client(t))
	m := c.RWMutex(name)
	proxy.OnCommand(func(cmd redistest.Command) redistest.Fault {
		if !strings.HasPrefix(cmd.Name, "EVAL") {
			return redistest.Pass
		}
		switch rand.N(6) {
		case 0:
			return redistest.CloseAfterExec
		case 1:
			return redistest.DropBefore
		}
		return redistest.Pass
	})
	var inside atomic.Int64
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(redistest.CountOfWork(t, 3000)))
	for range 8 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				writes := rand.N(3) == 0
				f, weight := m.RLock, int64(1)
				if writes {
					f, weight = m.Lock, 1000
				}
				l, err := f(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(weight); writes && n != 1000 || !writes && n >= 1000 {
					t.Errorf("inside: %d", n)
				}
				nested, err := f(l.Context(t.Context()))
				if err != nil {
					t.Error(err)
				} else if err := nested.Release(t.Context()); err != nil {
					t.Error(err)
				}
				inside.Add(-weight)
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("figure: %d faults", proxy.Injected())
	proxy.OnCommand(nil)
	redistest.Eventually(t, 10*time.Second, "nothing is left", func() error {
		if keys := s.Admin().Keys(t.Context(), "*").Val(); len(keys) > 1 {
			return fmt.Errorf("%q", keys)
		}
		return nil
	})
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// In a cluster the timeout keys and the marks must be in the lock's slot, for any name that a lock
// may have.
func TestInACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 3, 0)
	c := holdfast.New(cluster.Client(t))
	defer c.Close()
	for _, name := range []string{"a", "{u1}:a", "{{t}}", "a b", "x{t}{s}"} {
		m := c.RWMutex(name)
		w, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waits := make(chan error, 1)
		go func() {
			l, err := m.RLock(context.Background())
			if err == nil {
				err = l.Release(context.Background())
			}
			waits <- err
		}()
		r, err := m.RLock(w.Context(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		pause(50 * time.Millisecond)
		cluster.MoveSlot(name)
		for _, l := range []*lease.Lease{w, r} {
			if err := l.Release(t.Context()); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		if err := <-waits; err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
