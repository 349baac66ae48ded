// These tests run on real servers and real processes, and show what must hold for both semaphores.

package semaphore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/test/enginetest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// runWorker acquires and releases ROUNDS times from each of four goroutines. It counts, outside of
// the semaphore, how many holders have permits.
func runWorker(c *redistest.ChildContext) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("SERVER")})
	defer rdb.Close()
	e, err := enginetest.Open(rdb)
	if err != nil {
		c.Say("error %v", err)
		return
	}
	defer e.Close()
	rounds, _ := strconv.Atoi(os.Getenv("ROUNDS"))
	var workers sync.WaitGroup
	for i := range 4 {
		workers.Go(func() {
			for range rounds {
				if err := work(c, e, rdb, i); err != nil {
					c.Say("error %v", err)
					return
				}
			}
		})
	}
	workers.Wait()
	c.Say("done")
}

// work takes one to three permits of the kind that KIND names.
func work(c *redistest.ChildContext, e *engine.Engine, rdb *redis.Client, n int) error {
	n = 1 + n%3
	var release func() error
	if os.Getenv("KIND") == "permits" {
		l, err := NewPermits(e, "s", "s", hold.Defaults()).Acquire(c, n)
		if err != nil {
			return err
		}
		release = func() error { return l.Release(c) }
	} else {
		s := New(e, "s", "s")
		if err := s.Acquire(c, n); err != nil {
			return err
		}
		release = func() error { return s.Release(c, n) }
	}
	inside, err := rdb.IncrBy(c, "inside", int64(n)).Result()
	if err != nil {
		return err
	}
	if inside > permits {
		return fmt.Errorf("%d permits in use, there are %d", inside, permits)
	}
	if err := rdb.DecrBy(c, "inside", int64(n)).Err(); err != nil {
		return err
	}
	return release()
}

const permits = 5

func TestNeverMoreThanThePermits(t *testing.T) {
	for _, kind := range []string{"counting", "permits"} {
		t.Run(kind, func(t *testing.T) {
			server := redistest.Server(t)
			rdb := server.Client(t)
			e := enginetest.New(t, rdb)
			if kind == "permits" {
				if err := NewPermits(e, "s", "s", hold.Defaults()).SetPermits(t.Context(), permits); err != nil {
					t.Fatal(err)
				}
			} else if set, err := New(e, "s", "s").TrySetPermits(t.Context(), permits); !set || err != nil {
				t.Fatalf("set: %v, %v", set, err)
			}
			acquires := redistest.CountOfWork(t, 100_000)
			const processes = 8
			var children []*redistest.ChildProc
			for range processes {
				children = append(children, redistest.Start(t, "worker", map[string]string{
					"SERVER": server.Addr(), "KIND": kind, "ROUNDS": strconv.Itoa(acquires / processes / 4),
				}))
			}
			began := time.Now()
			for _, c := range children {
				if line, ok := c.TryLine(5 * time.Minute); !ok || line != "done" {
					t.Fatalf("a worker says %q", line)
				}
			}
			t.Logf("%d acquires over %d processes in %v", acquires, processes, time.Since(began))
			if free := rdb.Get(t.Context(), "s").Val(); free != strconv.Itoa(permits) {
				t.Errorf("%s permits are free in the end, want %d", free, permits)
			}
			if kind == "permits" && rdb.ZCard(t.Context(), "{s}:timeout").Val() != 0 {
				t.Error("permits are taken in the end")
			}
		})
	}
}

// runHolder acquires three permits and holds them until it is killed.
func runHolder(c *redistest.ChildContext) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("SERVER")})
	defer rdb.Close()
	e, err := enginetest.Open(rdb)
	if err != nil {
		c.Say("error %v", err)
		return
	}
	defer e.Close()
	length, _ := time.ParseDuration(os.Getenv("LEASE"))
	if _, err := NewPermits(e, "s", "s", hold.NewSettings([]lease.Option{lease.Renewed(length)})).Acquire(c, 3); err != nil {
		c.Say("error %v", err)
		return
	}
	c.Say("acquired")
	<-c.Done()
}

func TestPermitsOfAKilledHolderComeBack(t *testing.T) {
	t.Parallel()
	const length = 1500 * time.Millisecond
	server := redistest.Server(t)
	pulse := redistest.FeelPulse(t)
	e := enginetest.New(t, server.Client(t))
	s := NewPermits(e, "s", "s", hold.Defaults())
	if err := s.SetPermits(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	for range redistest.Count(t, 30) {
		redistest.Undisturbed(t, length/5, func(t testing.TB) {
			child := redistest.Start(t, "holder", map[string]string{"SERVER": server.Addr(), "LEASE": length.String()})
			child.Expect("acquired")
			time.Sleep(2 * length) // the lease is renewed during this time
			l, err := s.TryAcquire(t.Context(), 1)
			if err == nil {
				_ = l.Release(t.Context())
			}
			if !errors.Is(err, errs.Busy) {
				t.Fatalf("try while another holds all: %v", err)
			}
			child.Kill()
			killed := time.Now()
			if l, err = s.Acquire(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
			pulse.Within(t, fmt.Sprintf("the permits' way back, with a lease of %v,", length), killed, length+200*time.Millisecond)
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if n, err := s.Available(t.Context()); n != 3 || err != nil {
				t.Errorf("%d permits are free, %v", n, err)
			}
		})
	}
}

// Short runs use the full number too: a smaller number would not show the failure.
func TestHundredThousandExpiredPermits(t *testing.T) {
	const all = 100_000
	rdb := redistest.Server(t).Client(t)
	ctx := t.Context()
	pipe := rdb.Pipeline()
	pipe.Set(ctx, "s", 1, 0)
	for i := 1; i < all; i++ {
		pipe.ZAdd(ctx, "{s}:timeout", redis.Z{Score: float64(i), Member: fmt.Sprintf("%016d", i)})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	s := NewPermits(enginetest.New(t, rdb), "s", "s", hold.Defaults())
	if n, err := s.Available(ctx); n != all || err != nil {
		t.Fatalf("%d are free, %v; want %d", n, err, all)
	}
	// Each visit takes back a bounded part, so that the server never stands still for the others.
	// Each visit also gets the permits that it asks for.
	for visit, left := 0, int64(all-1); left > 0; visit++ {
		l, err := s.TryAcquire(ctx, 1000)
		if err != nil {
			t.Fatalf("visit %d: %v", visit, err)
		}
		if err := l.Release(ctx); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Permits(ctx); n != all || err != nil {
			t.Fatalf("visit %d: %d in all, %v", visit, n, err)
		}
		before := left
		if left = rdb.ZCard(ctx, "{s}:timeout").Val(); before-left > 1000 {
			t.Fatalf("visit %d took back %d, want at most 1000", visit, before-left)
		}
		if visit > all/1000 {
			t.Fatalf("%d are still there after %d visits", left, visit)
		}
	}
	if free := rdb.Get(ctx, "s").Val(); free != strconv.Itoa(all) {
		t.Errorf("%s are free, want %d", free, all)
	}
}

// Replies are lost all the time, and each call counts once all the same.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	rdb := server.Client(t)
	proxy := redistest.Proxy(t, server.Addr())
	e := enginetest.New(t, proxy.Client(t))
	s, p := New(e, "s", "s"), NewPermits(e, "p", "p", hold.Defaults())
	ctx := t.Context()
	if set, err := s.TrySetPermits(ctx, 1000); !set || err != nil {
		t.Fatalf("%v, %v", set, err)
	}
	if err := p.SetPermits(ctx, 1000); err != nil {
		t.Fatal(err)
	}
	proxy.OnCommand(func(c redistest.Command) redistest.Fault {
		if c.Name != "EVALSHA" && c.Name != "EVAL" {
			return redistest.Pass
		}
		switch c.N % 7 {
		case 0:
			return redistest.CloseAfterExec
		case 3:
			return redistest.HalfReply
		default:
			return redistest.Pass
		}
	})
	rounds := redistest.Count(t, 1000)
	var left atomic.Int64
	left.Store(int64(rounds))
	var callers sync.WaitGroup
	for range 10 {
		callers.Go(func() {
			for i := left.Add(-1); i >= 0; i = left.Add(-1) {
				if err := takeAndGiveBack(ctx, s, p, i%3 == 0); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	if proxy.Injected() == 0 {
		t.Error("no reply was lost")
	}
	proxy.OnCommand(nil)
	if free := rdb.Get(ctx, "s").Val(); free != "1000" {
		t.Errorf("after %d rounds %s permits are free, want 1000", rounds, free)
	}
	if n, err := p.Available(ctx); n != 1000 || err != nil {
		t.Errorf("after %d rounds %d leased permits are free, %v", rounds, n, err)
	}
}

// takeAndGiveBack makes each kind of call. Afterwards everything is as it was before.
func takeAndGiveBack(ctx context.Context, s *Semaphore, p *PermitSemaphore, byID bool) error {
	if err := s.Acquire(ctx, 2); err != nil {
		return err
	}
	if err := errors.Join(s.Release(ctx, 1), s.AddPermits(ctx, 1)); err != nil {
		return err
	}
	l, err := p.Acquire(ctx, 2)
	if err != nil {
		return err
	}
	if !byID {
		return l.Release(ctx)
	}
	for _, id := range p.IDs(l) {
		err = errors.Join(err, p.ReleaseID(ctx, id))
	}
	return err
}

// The semaphores work on a cluster with sharded channels, whatever the braces of the name.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0)
	a, b := enginetest.New(t, c.Client(t)), enginetest.New(t, c.Client(t))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	pulse := redistest.FeelPulse(t)
	for _, name := range []string{"orders", "{user7}:cart", "cart:{user7}", "{t}{s}"} {
		s := New(a, name, name)
		if set, err := s.TrySetPermits(ctx, 1); !set || err != nil {
			t.Fatalf("%q: %v, %v", name, set, err)
		}
		if err := s.Acquire(ctx, 1); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		waiting := make(chan error)
		go func() { waiting <- New(b, name, name).Acquire(ctx, 1) }()
		time.Sleep(100 * time.Millisecond)
		released := time.Now()
		if err := s.Release(ctx, 1); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if err := <-waiting; err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		// This is less than the sleep of a waiter that no message wakes.
		pulse.Within(t, fmt.Sprintf("%q: the wake-up", name), released, 500*time.Millisecond)

		p := NewPermits(a, name+"2", name+"2", hold.Defaults())
		if err := p.SetPermits(ctx, 2); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		l, err := p.Acquire(ctx, 2)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if err := l.Release(ctx); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if n, err := p.Available(ctx); n != 2 || err != nil {
			t.Errorf("%q: %d are free, %v", name, n, err)
		}
	}
}

func TestDenied(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	rdb := server.Client(t)
	if err := rdb.Do(t.Context(), "ACL", "SETUSER", "u", "on", ">p", "~other", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	e := enginetest.New(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "u", "p" }))
	s, p := New(e, "s", "s"), NewPermits(e, "p", "p", hold.Defaults())
	ctx := t.Context()
	_, acquired := p.Acquire(ctx, 1)
	_, set := s.TrySetPermits(ctx, 1)
	_, free := s.Available(ctx)
	for i, err := range []error{
		s.Acquire(ctx, 1), s.TryAcquire(ctx, 1), s.Release(ctx, 1), s.AddPermits(ctx, 1), set, free,
		acquired, p.SetPermits(ctx, 1), p.ReleaseID(ctx, "00112233445566778899aabbccddeeff"),
	} {
		if !errors.Is(err, errs.Denied) || errors.Is(err, errs.Unknown) {
			t.Errorf("%d: %v, want one that matches %q", i, err, errs.Denied)
		}
	}
	if keys := rdb.Keys(ctx, "*").Val(); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}
