package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/shards"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// bubble runs a test in virtual time, with a server.
func bubble(t *testing.T, test func(t *testing.T, s *holdfasttest.Server)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) { test(t, holdfasttest.New(t)) })
}

func lock(t *testing.T, l holdfast.Locker) *holdfast.Lease {
	t.Helper()
	held, err := l.Lock(redistest.Within(t, 10*time.Minute))
	redistest.Must(t, err)
	return held
}

// A lease that nobody renews ends, in virtual time and in real time.
func TestLeasesEnd(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		l := lock(t, s.Client().Mutex("x", holdfast.Fixed(time.Hour)))
		_, err := s.Client().Mutex("x").TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		time.Sleep(time.Hour)
		s.RequireFree("x")
		world.WantErr(t, l.Err(), holdfast.ErrExpired)
	})
	s := holdfasttest.New(t)
	l, err := s.Client().Mutex("x", holdfast.Fixed(100*time.Millisecond)).Lock(t.Context())
	if err == nil {
		<-l.Done()
	} else { // this process stood still for longer than the lease
		world.WantErr(t, err, holdfast.ErrLost)
	}
	s.RequireFree("x")
}

// A program that takes an address finds the server there.
func TestAddr(t *testing.T) {
	s := holdfasttest.New(t)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	l := lock(t, client.Mutex("x"))
	s.RequireHeld("x")
	redistest.Check(t, l.Release(t.Context()))
	s.RequireNoLeases()
}

func TestHoldElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		m := s.Client().Mutex("x")
		release := s.HoldElsewhere("x")
		_, err := m.TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		begun := time.Now()
		time.AfterFunc(time.Minute, release)
		l := lock(t, m)
		if waited := time.Since(begun); waited < time.Minute || waited > time.Minute+time.Second {
			t.Errorf("waited for %v", waited)
		}
		l.Release(t.Context())
		s.RequireNoLeases()

		release = s.HoldElsewhere("x") // its release may come after its end
		s.Expire("x")
		l = lock(t, m)
		release()
		redistest.Check(t, l.Release(t.Context()))
	})
}

func TestExpire_Shards(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		over, works := make(chan error, 1), make(chan context.Context, 2)
		go func() {
			over <- s.Client().Shards("x", 1).Run(ctx, func(ctx context.Context, _ *shards.Shard) error {
				works <- ctx
				<-ctx.Done()
				return nil
			})
		}()
		first := <-works
		s.Expire("x")
		select {
		case <-works: // as a new member
		case <-ctx.Done():
			t.Error("the work has gone on")
		}
		world.WantErr(t, context.Cause(first), holdfast.ErrLost)
		stop()
		world.WantErr(t, <-over, context.Canceled)
	})
}

func TestDownAndUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		c := s.Client()
		l := lock(t, c.Mutex("x", holdfast.Renewed(30*time.Second)))
		s.Down()
		_, err := c.Mutex("y").TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrUnavailable)
		time.Sleep(15 * time.Second)
		s.Up()
		time.Sleep(time.Minute)
		if err := l.Err(); err != nil {
			t.Errorf("half a lease without Redis: %v", err)
		}
		s.Down()
		begun := time.Now()
		<-l.Done()
		if took := time.Since(begun); took > 31*time.Second {
			t.Errorf("told after %v", took)
		}
		world.WantErr(t, l.Err(), holdfast.ErrLost)
		fresh := s.Client()
		_, err = fresh.Mutex("y").TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrUnavailable)
		s.Up()
		s.RequireFree("x")
	})
}

func TestSilence(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		c := s.Client()
		l := lock(t, c.Mutex("x"))
		s.Silence()
		begun := time.Now()
		other := lock(t, c.Mutex("y"))
		if took := time.Since(begun); took < time.Second {
			t.Errorf("granted after %v", took)
		}
		time.Sleep(time.Minute)
		if l.Err() != nil || other.Err() != nil {
			t.Errorf("%v, %v", l.Err(), other.Err())
		}
	})
}

func TestLoseReplies(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		c := s.Client()
		for range 20 {
			s.LoseReplies(1)
			l := lock(t, c.Mutex("x"))
			s.LoseReplies(1)
			redistest.Check(t, l.Release(t.Context()))
			s.RequireNoLeases()
		}
	})
}

// Without messages those who wait find out by asking, a little later.
func TestDropMessages(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		waited := func() time.Duration {
			release := s.HoldElsewhere("x")
			var released time.Time
			time.AfterFunc(10*time.Second, func() { released = time.Now(); release() })
			l := lock(t, s.Client().Mutex("x"))
			defer l.Release(t.Context())
			return time.Since(released)
		}
		if d := waited(); d > 5*time.Millisecond {
			t.Errorf("woken by a message after %v", d)
		}
		restore := s.DropMessages()
		if d := waited(); d < 10*time.Millisecond || d > 3*time.Second {
			t.Errorf("without a message granted after %v", d)
		}
		restore()
		if d := waited(); d > 5*time.Millisecond {
			t.Errorf("woken by a message after %v", d)
		}
	})
}

// A failover that loses a grant makes two holders, and gives the token twice: the other may be granted what
// the first one holds, until that renews.
func TestFailover(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		a, b := s.Client(), s.Client()
		first := lock(t, a.Mutex("x"))
		redistest.Must(t, first.Release(t.Context()))
		synctest.Wait()
		l := lock(t, a.Mutex("x"))
		s.Failover(0)
		_, err := b.Mutex("x").TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		s.Failover(1)
		other, err := b.Mutex("x").TryLock(t.Context())
		redistest.Must(t, err)
		s.RequireTokensGrow(first.Token(), other.Token())
		<-l.Done()
		world.WantErr(t, l.Err(), holdfast.ErrLost)
		redistest.Check(t, other.Err())
	})
}

// This catches a history of which sorted sets change when those of the server do.
func TestFailover_OfSortedSets(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		c := s.Client()
		for range 2 {
			_, err := c.Slots("x", 2).Acquire(t.Context())
			redistest.Must(t, err)
			synctest.Wait()
		}
		s.Failover(1)
		other, err := s.Client().Slots("x", 2).TryAcquire(t.Context())
		redistest.Must(t, err)
		redistest.Equal(t, other.Number(), 1, "it has number %d, want %d")
	})
}

func TestLockers(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		granted := holdfasttest.Granting(t)
		a, b := lock(t, granted), lock(t, granted)
		if a.Err() != nil || b.Err() != nil {
			t.Error(a.Err(), b.Err())
		}
		if l, ok := holdfast.LeaseFrom(a.Context(t.Context()), granted); !ok || l != a {
			t.Errorf("the work under a has the lease %p, want %p", l, a)
		}
		if _, ok := holdfast.LeaseFrom(t.Context(), granted); ok {
			t.Error("a lease where none is held")
		}
		busy := holdfasttest.Busy(t)
		_, err := busy.TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		_, err = busy.Lock(redistest.Within(t, time.Minute))
		world.WantErr(t, err, context.DeadlineExceeded, holdfast.ErrBusy)
		losing := holdfasttest.LosesAfter(t, time.Minute)
		l, short := lock(t, losing), lock(t, losing)
		redistest.Check(t, short.Release(t.Context()))
		begun := time.Now()
		<-l.Context(t.Context()).Done()
		if took := time.Since(begun); took < time.Minute || took > time.Minute+time.Second {
			t.Errorf("lost after %v", took)
		}
		world.WantErr(t, l.Err(), holdfast.ErrLost)
	})
}

// recorder is a testing.TB that keeps what fails it.
type recorder struct {
	testing.TB
	failed []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failed = append(r.failed, fmt.Sprintf(format, args...))
}

// Fatalf ends a test in its place.
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r)
}

// fails runs f, and returns what it would have failed a test with.
func fails(t *testing.T, f func(s *holdfasttest.Server)) string {
	t.Helper()
	r := &recorder{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(r) {
				panic(p)
			}
		}()
		f(holdfasttest.New(r))
	}()
	return strings.Join(r.failed, "\n")
}

func TestRequireFails(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		for what, f := range map[string]func(s *holdfasttest.Server){
			"held": func(s *holdfasttest.Server) { s.RequireHeld("x") },
			"free": func(s *holdfasttest.Server) { s.HoldElsewhere("x"); s.RequireFree("x") },
			"1 waiting": func(s *holdfasttest.Server) { // beside nothing that is held
				b := s.Client().Barrier("x", 2)
				go func() { _, _ = b.Await(t.Context()) }()
				time.Sleep(time.Second)
				s.RequireFree("x")
			},
			"still held":           func(s *holdfasttest.Server) { s.HoldElsewhere("x"); s.RequireNoLeases() },
			"token 4":              func(s *holdfasttest.Server) { s.RequireTokensGrow(3, 5, 4) },
			"token 5":              func(s *holdfasttest.Server) { s.RequireTokensGrow(5, 5) },
			"the lease goes on":    func(s *holdfasttest.Server) { s.Lose(gone(t, s)) },
			"two sections at once": checked(nil, nil),
			"was accepted after":   checked(mutex, careless),
			"goes on for":          checked(mutex, stubborn),
		} {
			if got := fails(t, f); !strings.Contains(got, what) {
				t.Errorf("%q: %q", what, got)
			}
		}
	})
}

// careless is a section that writes whenever it comes to it: after a loss, when others have written.
func careless(ctx context.Context, _ *holdfast.Lease) bool {
	if ctx.Err() != nil {
		time.Sleep(4 * time.Second)
	}
	return true
}

// stubborn is a section that goes on after its lock was lost.
func stubborn(ctx context.Context, _ *holdfast.Lease) bool {
	select {
	case <-ctx.Done():
		time.Sleep(time.Minute)
	case <-time.After(time.Second):
	}
	return false
}

// gone returns a lease that was released.
func gone(t *testing.T, s *holdfasttest.Server) *holdfast.Lease {
	l := lock(t, s.Client().Mutex("x"))
	l.Release(t.Context())
	return l
}

func mutex(c *holdfast.Client) holdfast.Locker { return c.Mutex("ledger") }

// checked checks a section that pauses, and then writes if accept says so. Without a lock each process has
// a name of its own.
func checked(lock func(*holdfast.Client) holdfast.Locker, accept func(context.Context, *holdfast.Lease) bool) func(*holdfasttest.Server) {
	return func(s *holdfasttest.Server) {
		var n atomic.Int64
		if lock == nil {
			lock = func(c *holdfast.Client) holdfast.Locker { return c.Mutex(fmt.Sprint("own:", n.Add(1))) }
		}
		s.CheckExclusive(holdfasttest.Section{Lock: lock, Work: func(ctx context.Context, l *holdfast.Lease, p *holdfasttest.Probe) error {
			p.Pause()
			if accept == nil || accept(ctx, l) {
				p.Wrote()
			}
			return nil
		}})
	}
}

// A section with a fence passes, even if it pauses more than once and does not look at its context.
func TestCheckExclusive(t *testing.T) {
	for range redistest.Count(t, 50) {
		bubble(t, func(t *testing.T, s *holdfasttest.Server) {
			var mu sync.Mutex
			var newest int64
			lock := func(c *holdfast.Client) holdfast.Locker {
				return c.Mutex("ledger", holdfast.MaxHold(4*time.Second))
			}
			accept := func(_ context.Context, l *holdfast.Lease) bool {
				mu.Lock()
				defer mu.Unlock()
				accepted := l.Token() >= newest
				newest = max(newest, l.Token())
				return accepted
			}
			s.CheckExclusive(holdfasttest.Section{Lock: lock, Runs: 12, Work: func(ctx context.Context, l *holdfast.Lease, p *holdfasttest.Probe) error {
				for range 2 {
					if p.Pause(); accept(ctx, l) {
						p.Wrote()
					}
				}
				return nil
			}})
			s.RequireNoLeases()
		})
	}
}

// A section does not look at its context, and pauses for long after its lease is over. Nothing that happens to it
// in its pauses counts against it, and its later losses take nothing away from the next holder.
func TestCheckExclusive_ASectionThatIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		redistest.Must(t, redistest.Err(s.Client().PermitSemaphore("slots").TrySetPermits(t.Context(), 1)))
		lock := func(c *holdfast.Client) holdfast.Locker {
			return c.PermitSemaphore("slots", holdfast.MaxHold(4*time.Second)).Locker(1)
		}
		s.CheckExclusive(holdfasttest.Section{Lock: lock, Runs: 10, Work: func(_ context.Context, _ *holdfast.Lease, p *holdfasttest.Probe) error {
			for range 40 {
				p.Pause()
			}
			return nil
		}})
	})
}

// What is lost or has expired is free for others, of every kind that gives leases. The holder knows a loss at once, and
// what has expired when it renews.
func TestLoseAndExpireOfEachKind(t *testing.T) {
	for _, kind := range lockertest.Kinds {
		for what, end := range map[string]func(s *holdfasttest.Server, l *holdfast.Lease){
			"lost":    func(s *holdfasttest.Server, l *holdfast.Lease) { s.Lose(l); s.RequireFree(l.Name()) },
			"expired": func(s *holdfasttest.Server, l *holdfast.Lease) { s.Expire(l.Name()) },
		} {
			t.Run(kind.Name+" "+what, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *holdfasttest.Server) {
					c, other := s.Client(), s.Client()
					if kind.Prepare != nil {
						redistest.Must(t, kind.Prepare(t.Context(), c, "k"))
					}
					l := lock(t, kind.Locker(c, "k"))
					ctx, begun := l.Context(t.Context()), time.Now()
					end(s, l)
					known := errors.Is(l.Err(), holdfast.ErrLost) && errors.Is(context.Cause(ctx), holdfast.ErrLost)
					if took := time.Since(begun); known != (what == "lost") || took > 100*time.Millisecond {
						t.Errorf("after %v the holder knows it: %v", took, known)
					}
					next := lock(t, kind.Locker(other, "k"))
					time.Sleep(15 * time.Second) // until its holder would have renewed it
					if !errors.Is(l.Err(), holdfast.ErrLost) || next.Err() != nil {
						t.Errorf("its holder: %v, the next: %v", l.Err(), next.Err())
					}
					redistest.Check(t, next.Release(t.Context()))
				})
			})
		}
	}
}

// Expire ends holds of every kind that has the name, and leaves what nobody holds as it is.
func TestExpireEndsHoldsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		c := s.Client()
		redistest.Must(t, redistest.Err(c.PermitSemaphore("p").TrySetPermits(t.Context(), 1)))
		redistest.Must(t, redistest.Err(c.Semaphore("s").TrySetPermits(t.Context(), 1)))
		redistest.Must(t, redistest.Err(c.Latch("l").TrySetCount(t.Context(), 1)))
		lock(t, c.Mutex("x"))
		redistest.Must(t, redistest.Err(c.Slots("x", 1).Acquire(t.Context())))
		for _, name := range []string{"p", "s", "l", "x"} {
			s.Expire(name)
		}
		redistest.Check(t, redistest.Err(c.PermitSemaphore("p").TryAcquire(t.Context(), 1)))
		redistest.Check(t, c.Semaphore("s").TryAcquire(t.Context(), 1))
		redistest.Check(t, redistest.Err(s.Client().Mutex("x").TryLock(t.Context())))
		redistest.Check(t, redistest.Err(s.Client().Slots("x", 1).TryAcquire(t.Context())))
		n, err := c.Latch("l").Count(t.Context())
		if n != 1 || err != nil {
			t.Errorf("the count of the latch: %d, %v", n, err)
		}
	})
}
