// A MultiLock takes all of several locks, or none of them; what its contexts carry, and what Shutdown waits for.

package multilock_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMultiLock(t *testing.T) {
	redises.Play(t, 2, func(t *testing.T, w *redises.World) {
		p := w.Process()
		b, a := p.Clients[1].Mutex("b"), p.Clients[0].Mutex("a")
		m := holdfast.NewMultiLock(b, a, p.Clients[0].FairMutex("f"), p.Clients[0].RWMutex("rw").RLocker())
		l := redises.Locked(w, t.Context(), m.Lock)
		ctx := l.Context(t.Context())
		redises.WantLive(t, l, ctx)
		for i, key := range []string{"a", "b", "f", "rw"} {
			if !w.Servers[i%2].Exists(key) && !w.Servers[0].Exists(key) {
				t.Errorf("%s is not held", key)
			}
		}
		if tokens := l.Tokens(); len(tokens) != 4 || tokens[0] == 0 || tokens[3] != 0 {
			t.Errorf("tokens %d, want those of a writer, a writer, a fair writer and a reader", tokens)
		}
		if left := time.Until(l.Deadline()); left < 29*time.Second || left > 30*time.Second {
			t.Errorf("%v left", left)
		}
		world.WantErr(t, redistest.Err(m.TryLock(t.Context())), holdfast.ErrBusy)

		inner := redises.Locked(w, ctx, m.Lock)
		if !slices.Equal(inner.Tokens(), l.Tokens()) {
			t.Errorf("re-entered with the tokens %d, had %d", inner.Tokens(), l.Tokens())
		}
		one, err := a.Lock(ctx)
		redistest.Must(t, err)
		world.Equal(t, one.HoldCount(), 3, "hold count %d")
		redises.Release(t, one, inner)
		redises.WantLive(t, l, ctx)
		time.Sleep(100 * time.Second) // all four locks are renewed
		redises.WantLive(t, l, ctx)
		redises.Release(t, l)
		redises.WantEnded(t, l, ctx, holdfast.ErrReleased)
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrReleased)
	})
}

func TestMultiLock_Do(t *testing.T) {
	redises.Play(t, 1, func(t *testing.T, w *redises.World) {
		c := w.Process().Clients[0]
		m := holdfast.NewMultiLock(c.Mutex("a"), c.Mutex("b"))
		ran := false
		err := holdfast.Do(t.Context(), m, func(ctx context.Context) error {
			ran = true
			return holdfast.Do(ctx, m, func(context.Context) error { return nil })
		}, redises.WantName(t, "a, b")...)
		if err != nil || !ran {
			t.Errorf("%v, ran %v", err, ran)
		}
	})
}

// slow is a lock whose grant takes a while.
type slow struct {
	*rlock.Mutex
	by time.Duration
}

func (s slow) TryLock(ctx context.Context) (*lease.Lease, error) {
	l, err := s.Mutex.TryLock(ctx)
	time.Sleep(s.by)
	return l, err
}

// If not all locks are granted, those that were are free again: when another holds one, when the wait
// ends, and when one has ended meanwhile, also at the last moment.
func TestMultiLock_LeavesNothing(t *testing.T) {
	for what, tc := range map[string]struct {
		a    []holdfast.LeaseOption
		wait bool
		busy bool // another holds b
		at   time.Duration
		errs []error
	}{
		"a try":                         {nil, false, true, 300 * time.Millisecond, []error{holdfast.ErrBusy}},
		"the context ends":              {nil, true, true, 500 * time.Millisecond, []error{holdfast.ErrBusy, context.DeadlineExceeded}},
		"one ends for good":             {[]holdfast.LeaseOption{holdfast.MaxHold(200 * time.Millisecond)}, true, true, 200 * time.Millisecond, []error{holdfast.ErrMaxHold}},
		"one is over when all are held": {[]holdfast.LeaseOption{holdfast.Fixed(200 * time.Millisecond)}, false, false, 300 * time.Millisecond, []error{holdfast.ErrLost}},
	} {
		t.Run(what, func(t *testing.T) {
			redises.Play(t, 1, func(t *testing.T, w *redises.World) {
				c, other := w.Process().Clients[0], w.Process().Clients[0]
				var taken *holdfast.Lease
				if tc.busy {
					taken = w.Lock(other.Mutex("b"))
				}
				ctx := redistest.Within(t, 500*time.Millisecond)
				m := holdfast.NewMultiLock(c.Mutex("a2"), slow{c.Mutex("b"), 300 * time.Millisecond}, c.Mutex("a", tc.a...))
				lock := m.TryLock
				if tc.wait {
					lock = m.Lock
				}
				err := redistest.Err(lock(ctx))
				world.WantErr(t, err, tc.errs...)
				redises.Says(t, err, `lock all of 3: `)
				world.Within(t, "it failed", w.Now(), tc.at, tc.at+10*time.Millisecond)
				synctest.Wait()
				if w.Servers[0].Exists("a") || w.Servers[0].Exists("a2") || w.Servers[0].Exists("b") != tc.busy {
					t.Errorf("left behind: %q", w.Servers[0].Keys())
				}
				_ = taken.Release(t.Context())
			})
		})
	}
}

// However a lease on several locks ends, all of them end. A goroutine that has waited on Done finds that
// every context of the lease has ended.
func TestTheContextsOfAMultiLockEndBeforeDoneIsClosed(t *testing.T) {
	redises.Play(t, 2, func(t *testing.T, w *redises.World) {
		p := w.Process()
		m := holdfast.NewMultiLock(p.Clients[0].Mutex("a"), p.Clients[1].Mutex("b"))
		for i, tc := range []struct {
			end   func(l *multilock.Lease)
			cause error
		}{
			{func(l *multilock.Lease) { redises.Release(t, l) }, holdfast.ErrReleased},
			{func(*multilock.Lease) { w.Servers[0].Del("a") }, holdfast.ErrLost},
			{func(*multilock.Lease) { w.Servers[1].Del("b") }, holdfast.ErrLost},
			{func(*multilock.Lease) { p.Clients[1].Close() }, holdfast.ErrClosed},
		} {
			l, began := redises.Locked(w, t.Context(), m.Lock), w.Now()
			contexts := make([]context.Context, 100)
			for i := range contexts {
				contexts[i] = l.Context(t.Context())
			}
			tc.end(l)
			<-l.Done()
			for _, ctx := range contexts {
				if ctx.Err() == nil {
					t.Fatalf("end %d: a context goes on", i)
				}
			}
			redises.WantEnded(t, l, contexts[0], tc.cause)
			world.WantErr(t, l.Release(t.Context()), tc.cause)
			world.Within(t, "the end", w.Now()-began, 0, 10*time.Second+100*time.Millisecond)
			if tc.cause != holdfast.ErrClosed && (w.Servers[0].Exists("a") || w.Servers[1].Exists("b")) {
				t.Errorf("end %d: one is still held", i)
			}
		}
		world.WantErr(t, redistest.Err(m.Lock(t.Context())), holdfast.ErrClosed)
		time.Sleep(31 * time.Second)
	})
}

func TestMultiLock_AFailingReleaseFreesTheRest(t *testing.T) {
	redises.Play(t, 3, func(t *testing.T, w *redises.World) {
		p := w.Process()
		m := holdfast.NewMultiLock(p.Clients[0].Mutex("a"), p.Clients[1].Mutex("b"), p.Clients[2].Mutex("c"))
		l := redises.Locked(w, t.Context(), m.Lock)
		p.Unplug(1)
		released := make(chan error)
		go func() { released <- l.Release(t.Context()) }()
		time.Sleep(10 * time.Millisecond)
		if w.Servers[0].Exists("a") || w.Servers[2].Exists("c") || !w.Servers[1].Exists("b") {
			t.Error("not just b is held")
		}
		redises.Says(t, <-released, "release all of 3: ", `mutex "b"`)
		p.Plug(1)
		time.Sleep(2 * time.Second) // a server that is out of reach is dialled about once a second
		if w.Servers[1].Exists("b") {
			t.Error("b was not released in the background")
		}
	})
}

func TestMultiLock_BadArguments(t *testing.T) {
	redises.Play(t, 1, func(t *testing.T, w *redises.World) {
		c, same := w.Process().Clients[0], w.Process().Clients[0]
		striped := holdfast.NewMultiLock(c.Striped("s", 4).At(1), c.Mutex("a")) // a stripe is lease.Placed
		redises.Release(t, redises.Locked(w, t.Context(), striped.Lock))
		w.RDBs[0].Del(t.Context(), "holdfast_stripes:s")
		for what, m := range map[string]interface {
			Lock(context.Context) (*multilock.Lease, error)
		}{
			"none":                 holdfast.NewMultiLock(),
			"nil":                  holdfast.NewMultiLock(holdfast.Locker(nil)),
			"twice":                holdfast.NewMultiLock(c.Mutex("a"), c.Mutex("b"), c.Mutex("a")),
			"twice, two kinds":     holdfast.NewMultiLock(c.Mutex("a"), c.FairMutex("a")),
			"twice, two Clients":   holdfast.NewMultiLock(c.Mutex("a"), same.Mutex("a")),
			"both sides":           holdfast.NewMultiLock(c.RWMutex("a"), c.RWMutex("a").RLocker()),
			"no place":             holdfast.NewMultiLock(struct{ lease.Locker }{c.Mutex("a")}),
			"a name that is none":  holdfast.NewMultiLock(c.Mutex("a"), c.Mutex("")),
			"a Client that cannot": holdfast.NewMultiLock(c.Mutex("a"), holdfast.New(nil).Mutex("a"), holdfast.New(nil).Mutex("b")),
		} {
			_, err := m.Lock(t.Context())
			if t.Logf("%s: %v", what, err); err == nil {
				t.Error(what)
			}
			world.WantErr(t, err, holdfast.ErrBadArgument)
		}
		if w.HeldOn() != 0 || w.Servers[0].Exists("a") {
			t.Error("something is held")
		}
	})
}

// Callers may name the locks in any order: they never wait for each other in a circle. That is also
// true for locks of one name on several servers.
func TestMultiLock_OppositeOrders(t *testing.T) {
	redises.Play(t, 2, func(t *testing.T, w *redises.World) {
		rounds := redistest.Count(t, 400)
		var inside atomic.Int64
		var wg sync.WaitGroup
		for i := range 4 {
			p := w.Process()
			lockers := []holdfast.Locker{p.Clients[0].Mutex("x"), p.Clients[1].Mutex("x"), p.Clients[0].Mutex("y"), p.Clients[1].Mutex("z")}
			random := rand.New(rand.NewPCG(uint64(i), 1))
			wg.Go(func() {
				for range rounds / 4 {
					random.Shuffle(len(lockers), func(a, b int) { lockers[a], lockers[b] = lockers[b], lockers[a] })
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					l, err := holdfast.NewMultiLock(lockers...).Lock(ctx)
					cancel()
					if err != nil {
						t.Error(err)
						return
					}
					if inside.Add(1) > 1 {
						t.Error("two are inside")
					}
					time.Sleep(time.Duration(random.IntN(2)) * time.Millisecond)
					inside.Add(-1)
					redises.Release(t, l)
				}
			})
		}
		wg.Wait()
	})
}

// A lock that runs out while the MultiLock waits for another lock is taken again, but only after a pause.
func TestMultiLock_LosesOneWhileItWaits(t *testing.T) {
	redises.Play(t, 1, func(t *testing.T, w *redises.World) {
		c, other := w.Process().Clients[0], w.Process().Clients[0]
		held := w.Lock(other.Mutex("b"))
		time.AfterFunc(3*time.Second, func() { held.Release(context.Background()) })
		l := redises.Locked(w, t.Context(), holdfast.NewMultiLock(c.Mutex("a", holdfast.Fixed(400*time.Millisecond)), c.Mutex("b")).Lock)
		world.Within(t, "granted", w.Now(), 3*time.Second, 3*time.Second+maxPause)
		redises.WantLive(t, l, l.Context(t.Context()))
		if left := time.Until(l.Deadline()); left <= 0 {
			t.Errorf("%v left", left)
		}
		redises.Release(t, l)
	})
}

const maxPause = 250 * time.Millisecond

// Some locks have a lease that is shorter than the time that it takes to get all the locks. Lock
// pauses before it asks for such locks again, and TryLock asks only once.
func TestMultiLock_TooShort(t *testing.T) {
	redises.Play(t, 1, func(t *testing.T, w *redises.World) {
		p := w.Process()
		m := holdfast.NewMultiLock(p.Clients[0].Mutex("a", holdfast.Fixed(100*time.Millisecond)), p.Clients[0].Mutex("b"))
		var asked atomic.Int64
		p.Nets[0].OnCommand(func(c redistest.Command) redistest.Fault {
			if slices.Contains(c.Args, "b") && slices.Contains(c.Args, "30000") {
				asked.Add(1)
				return redistest.Delay(150 * time.Millisecond)
			}
			return redistest.Pass
		})
		_, err := m.TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrLost)
		world.Equal(t, asked.Load(), 1, "a try asked %d times")
		ctx := redistest.Within(t, 10*time.Second)
		asked.Store(0)
		if _, err = m.Lock(ctx); err == nil {
			t.Error("granted")
		}
		if n := asked.Load(); n > 40 {
			t.Errorf("asked %d times in 10 s", n)
		}
		p.Nets[0].OnCommand(nil)
	})
}

func TestAWaitThatEndsBetweenTwoAttemptsSaysSo(t *testing.T) {
	redises.Play(t, 1, func(t *testing.T, w *redises.World) {
		p, q := w.Process(), w.Process()
		b := w.Lock(q.Clients[0].Mutex("b"))
		m := holdfast.NewMultiLock(p.Clients[0].Mutex("a", holdfast.Fixed(100*time.Millisecond)), p.Clients[0].Mutex("b"))
		for i := range 26 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+time.Duration(i)*10*time.Millisecond)
			world.WantErr(t, redistest.Err(m.Lock(ctx)), context.DeadlineExceeded)
			cancel()
		}
		redises.Release(t, b)
	})
}

// A context of a lease on several locks does not stand for the same locks by another Client: a Lock
// with it would not re-enter.
func TestMultiLock_LeaseFromIsOfTheSameClients(t *testing.T) {
	redises.Play(t, 1, func(t *testing.T, w *redises.World) {
		p, other := w.Process(), w.Process()
		l := redises.Locked(w, t.Context(), holdfast.NewMultiLock(p.Clients[0].Mutex("a"), p.Clients[0].Mutex("b")).Lock)
		ctx := l.Context(t.Context())
		for _, c := range []struct {
			a, b *holdfast.Client
			want bool
		}{
			{p.Clients[0], p.Clients[0], true},
			{p.Clients[0], other.Clients[0], false},
			{other.Clients[0], other.Clients[0], false},
		} {
			m := holdfast.NewMultiLock(c.b.Mutex("b"), c.a.Mutex("a"))
			if _, ok := m.LeaseFrom(ctx); ok != c.want {
				t.Errorf("found %v, want %v", ok, c.want)
			}
			in, err := m.TryLock(ctx)
			if (err == nil) != c.want {
				t.Error(err)
			}
			if err == nil {
				redises.Release(t, in)
			}
		}
		if _, ok := holdfast.NewMultiLock(p.Clients[0].Mutex("a"), p.Clients[0].Mutex("b")).LeaseFrom(lease.Bare(ctx)); ok {
			t.Error("a bare context carries the lease")
		}
		redises.Release(t, l)
	})
}

func TestShutdownServesWorkUnderSeveralLocks(t *testing.T) {
	redises.Play(t, 2, func(t *testing.T, w *redises.World) {
		p := w.Process()
		l := redises.Locked(w, t.Context(), holdfast.NewMultiLock(p.Clients[0].Mutex("a"), p.Clients[1].Mutex("b")).Lock)
		ctx := l.Context(t.Context())
		done := p.ShutDown(t.Context())
		for _, c := range p.Clients {
			more, err := c.Mutex("more").Lock(ctx)
			if err != nil {
				t.Error(err)
				continue
			}
			redises.Release(t, more)
			world.WantErr(t, redistest.Err(c.Mutex("more").Lock(lease.Bare(ctx))), holdfast.ErrClosed)
		}
		redises.Release(t, l)
		for range p.Clients {
			if err := <-done; err != nil || w.Now() > time.Second {
				t.Errorf("%v, after %v", err, w.Now())
			}
		}
	})
}

// A Lock of several locks that waits for one of them is no work yet, though it has others already.
// It ends with the Shutdown, and gives them back.
func TestShutdownEndsAWaitForSeveralLocks(t *testing.T) {
	redises.Play(t, 1, func(t *testing.T, w *redises.World) {
		p, other := w.Process(), w.Process()
		b := w.Lock(other.Clients[0].Mutex("b"))
		m := holdfast.NewMultiLock(p.Clients[0].Mutex("a"), p.Clients[0].Mutex("b"))
		failed := make(chan error, 1)
		go func() { failed <- redistest.Err(m.Lock(t.Context())) }()
		time.Sleep(time.Second)
		done := p.ShutDown(t.Context())
		select {
		case err := <-failed:
			world.WantErr(t, err, holdfast.ErrClosed)
		default:
			t.Error("it waits on")
			redises.Release(t, b)
			p.Clients[0].Close()
			<-failed
		}
		if err := <-done; err != nil || w.Now() > 2*time.Second {
			t.Errorf("%v, after %v", err, w.Now())
		}
		if w.Servers[0].Exists("a") {
			t.Error("a is still held")
		}
		_ = b.Release(t.Context())
		// Under a lease, it is a part of work: it waits, and is granted.
		q := w.Process()
		outer := w.Lock(q.Clients[0].Mutex("outer"))
		done = q.ShutDown(t.Context())
		m = holdfast.NewMultiLock(q.Clients[0].Mutex("a"), q.Clients[0].Mutex("b"))
		redises.Release(t, redises.Locked(w, outer.Context(t.Context()), m.Lock), outer)
		redistest.Check(t, <-done)
	})
}

func TestMain(m *testing.M) {
	logging.Disable() // go-redis logs every connection that a test refuses
	redistest.Main(m)
}

// Work may go on under a lease when its Client closes. A MultiLock that has re-entered that lease, and fails then, gives back
// its own part only.
func TestWhatAMultiLockGivesBackStaysForOthers(t *testing.T) {
	for range 5 { // which comes first, the end of the outer lease or what is given back, is up to the scheduler
		redises.Play(t, 1, func(t *testing.T, w *redises.World) {
			c, q := w.Process().Clients[0], w.Process().Clients[0]
			outer := redises.Locked(w, t.Context(), c.Mutex("a").Lock)
			busy := redises.Locked(w, t.Context(), q.Mutex("b").Lock)
			go func() {
				err := redistest.Err(holdfast.NewMultiLock(c.Mutex("a"), c.Mutex("b")).Lock(outer.Context(t.Context())))
				world.WantErr(t, err, holdfast.ErrClosed)
			}()
			time.Sleep(time.Second)
			c.Close()
			time.Sleep(time.Second)
			if !w.Servers[0].Exists("a") {
				t.Error("the lock is free, though work may be going on under the outer lease")
			}
			redises.Release(t, busy)
			time.Sleep(time.Minute)
		})
	}
}
