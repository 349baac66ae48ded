// This file is about Do, a Locker that is used as a sync.Locker, and the lease that work finds in its context.

package holdfast_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

func TestDo_Errors(t *testing.T) {
	failed := errors.New("work failed")
	for what, tc := range map[string]struct {
		work    func(ctx context.Context, p *world.Process) error
		matches []error
	}{
		"lost, and work does not notice": {func(ctx context.Context, p *world.Process) error {
			p.W.Mini.Del(world.Name)
			<-ctx.Done()
			return nil
		}, []error{holdfast.ErrLost}},
		"lost, which the release finds": {func(_ context.Context, p *world.Process) error {
			p.W.Mini.Del(world.Name)
			return nil
		}, []error{holdfast.ErrLost}},
		"lost, and work fails": {func(ctx context.Context, p *world.Process) error {
			p.W.Mini.Del(world.Name)
			<-ctx.Done()
			return failed
		}, []error{holdfast.ErrLost, failed}},
		"the release is not answered": {func(_ context.Context, p *world.Process) error {
			p.Unplug(true)
			return failed
		}, []error{failed, context.DeadlineExceeded}},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p := w.Process()
			err := holdfast.Do(t.Context(), p.MyLock, func(ctx context.Context) error { return tc.work(ctx, p) })
			world.WantErr(t, err, tc.matches...)
			w.At(31 * time.Second) // what was not released has ended
			w.WantFree()
		})
	}
}

func TestDo_Panic(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		var seen []string
		func() {
			defer func() { world.Equal(t, recover(), "work panics", "recovered %v") }()
			_ = holdfast.Do(t.Context(), p.MyLock, func(context.Context) error { panic("work panics") },
				holdfast.OnAcquire(func(context.Context, holdfast.Handle) { seen = append(seen, "acquired") }),
				holdfast.OnExit(func(context.Context, holdfast.Handle, error) { seen = append(seen, "exit") }))
		}()
		w.WantFree()
		if !slices.Equal(seen, []string{"acquired", "exit"}) {
			t.Errorf("hooks %q", seen)
		}
	})
}

// Unlock of what was lost panics, and touches no other holder; so does Lock in vain.
func TestSyncLocker_Panics(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		panics := func(want error, f func()) {
			t.Helper()
			defer func() {
				t.Helper()
				if err, _ := recover().(error); !errors.Is(err, want) {
					t.Errorf("recovered %v, want %v", err, want)
				}
			}()
			f()
		}
		locker := holdfast.SyncLocker(t.Context(), p.MyLock)
		locker.Lock()
		w.Mini.Del(world.Name)
		other := w.Lock(t.Context(), q.MyLock)
		panics(holdfast.ErrLost, locker.Unlock)
		w.WantHolder(other.Owner(), 1)
		panics(holdfast.ErrBusy, holdfast.SyncLocker(redistest.Within(t, time.Second), p.MyLock).Lock)
		w.Release(other)
	})
}

// Goroutines that share a sync.Locker exclude each other. This is so even if its context carries a
// lease on the lock: then all of them wait for that lease to end.
func TestASyncLockerDoesNotReenter(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		s := holdfast.SyncLocker(l.Context(t.Context()), p.MyLock)
		in, out := 0, make(chan any, 2)
		for range 2 {
			go func() {
				defer func() { out <- recover() }()
				s.Lock()
				in++
			}()
		}
		w.At(time.Second)
		if in > 0 {
			t.Errorf("%d are in beside the holder", in)
		}
		w.Release(l) // this ends the context of the sync.Locker
		for range 2 {
			if err, ok := (<-out).(error); !ok || !errors.Is(err, context.Canceled) {
				t.Errorf("Lock panicked with %v", err)
			}
		}
	})
}

// Each error matches the one sentinel that fits it, and no other sentinel.
func TestErrorsMatchOneFact(t *testing.T) {
	sentinels := []error{
		holdfast.ErrBusy, holdfast.ErrLost, holdfast.ErrReleased, holdfast.ErrMaxHold, holdfast.ErrClosed,
		holdfast.ErrWrongType, holdfast.ErrOutOfMemory, holdfast.ErrDenied, holdfast.ErrBadArgument,
	}
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		only := func(what string, err, want error) {
			t.Helper()
			for _, s := range sentinels {
				if errors.Is(err, s) != (s == want) {
					t.Errorf("%s: %v: matches %v is %v", what, err, s, errors.Is(err, s))
				}
			}
			if err.Error() == want.Error() {
				t.Errorf("%s: %q says neither what nor where", what, err)
			}
		}
		l := w.Lock(t.Context(), p.MyLock)
		_, err := q.MyLock.TryLock(t.Context())
		only("busy", err, holdfast.ErrBusy)
		_, err = q.Mutex(world.Name, holdfast.Fixed(0)).TryLock(t.Context())
		only("bad lease", err, holdfast.ErrBadArgument)
		_, err = q.MyLock.Attach(t.Context(), lease.Owner(hold.NewOwner("6e0e2d3c-0000-4000-8000-000000000000", 1)))
		only("attach", err, holdfast.ErrLost)
		inner := w.Lock(l.Context(t.Context()), p.MyLock)
		_, err = l.Detach(t.Context())
		only("detach under an inner lease", err, holdfast.ErrBadArgument)
		w.Release(inner)
		w.Release(l)
		only("second release", l.Release(t.Context()), holdfast.ErrReleased)
		only("ended", l.Err(), holdfast.ErrReleased)
		short := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.MaxHold(time.Second)))
		<-short.Done()
		only("held too long", short.Release(t.Context()), holdfast.ErrMaxHold)
		w.Mini.FlushAll()
		lost := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Fixed(time.Second)))
		<-lost.Done()
		only("run out", lost.Err(), holdfast.ErrLost)
		w.RDB.Set(t.Context(), "text", 1, time.Second)
		_, err = p.Mutex("text").TryLock(t.Context())
		only("wrong type", err, holdfast.ErrWrongType)
		p.Close()
		_, err = p.MyLock.Lock(t.Context())
		only("closed", err, holdfast.ErrClosed)
	})
}

// The wait has its own end, and work goes on for as long as it likes.
func TestWaitAtMost(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		never := func(context.Context) error { t.Error("work has run"); return nil }
		started := w.Now()
		err := holdfast.Do(t.Context(), q.MyLock, never, holdfast.WaitAtMost(3*time.Second))
		world.WantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
		world.Equal(t, w.Now()-started, 3*time.Second, "waited %v")
		short := redistest.Within(t, time.Second)
		started = w.Now()
		err = holdfast.Do(short, q.MyLock, never, holdfast.WaitAtMost(time.Hour))
		world.WantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
		world.Equal(t, w.Now()-started, time.Second, "waited %v under a context that ends after 1s")
		time.AfterFunc(time.Second, func() { w.Release(l) })
		value, err := holdfast.DoValue(t.Context(), q.MyLock, func(ctx context.Context) (int, error) {
			if _, bounded := ctx.Deadline(); bounded {
				t.Error("the work has the deadline of the wait")
			}
			time.Sleep(time.Minute)
			return 42, ctx.Err()
		}, holdfast.WaitAtMost(3*time.Second))
		if value != 42 || err != nil {
			t.Errorf("%d, %v", value, err)
		}
		w.WantFree()
	})
}

// onlyLocks is a Lockable without TryLock.
type onlyLocks struct{ locker holdfast.Locker }

func (o onlyLocks) Lock(ctx context.Context) (*holdfast.Lease, error) { return o.locker.Lock(ctx) }

func TestWaitAtMost_Once(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		never := func(context.Context) error { t.Error("work has run"); return nil }
		started, asked := w.Now(), q.Runs(world.LockRun)
		err := holdfast.Do(t.Context(), q.MyLock, never, holdfast.WaitAtMost(0))
		world.WantErr(t, err, holdfast.ErrBusy)
		if errors.Is(err, context.DeadlineExceeded) || w.Now() != started || q.Runs(world.LockRun) != asked+1 {
			t.Errorf("%v after %v, asked %d times", err, w.Now()-started, q.Runs(world.LockRun)-asked)
		}
		multi, quorum := holdfast.NewMultiLock(q.MyLock), holdfast.NewQuorum(world.Name, []*holdfast.Client{q.Client})
		world.WantErr(t, holdfast.Do(t.Context(), multi, never, holdfast.WaitAtMost(0)), holdfast.ErrBusy)
		world.WantErr(t, holdfast.Do(t.Context(), quorum, never, holdfast.WaitAtMost(0)), holdfast.ErrBusy)
		w.Release(l)
		ran := false
		err = holdfast.Do(t.Context(), q.MyLock, func(context.Context) error { ran = true; return nil }, holdfast.WaitAtMost(0))
		if err != nil || !ran {
			t.Errorf("a free lock: %v, ran %v", err, ran)
		}
		world.WantErr(t, holdfast.Do(t.Context(), p.MyLock, never, holdfast.WaitAtMost(-1)), holdfast.ErrBadArgument)
		world.WantErr(t, holdfast.Do(t.Context(), onlyLocks{p.MyLock}, never, holdfast.WaitAtMost(0)), holdfast.ErrBadArgument)
		if err := holdfast.Do(t.Context(), onlyLocks{p.MyLock}, nothing, holdfast.WaitAtMost(1)); err != nil {
			t.Errorf("a free lock without TryLock: %v", err)
		}
		w.WantFree()
		w.Mini.Del("holdfast_quorum")
	})
}

func TestWaitAtMost_Unreachable(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		p.Unplug(true)
		never := func(context.Context) error { t.Error("work has run"); return nil }
		for most, want := range map[time.Duration]time.Duration{0: 3 * time.Second, time.Second: time.Second} {
			started := w.Now()
			err := holdfast.Do(t.Context(), p.MyLock, never, holdfast.WaitAtMost(most))
			world.WantErr(t, err, holdfast.ErrUnavailable)
			if errors.Is(err, holdfast.ErrBusy) || w.Now()-started != want {
				t.Errorf("at most %v: %v after %v", most, err, w.Now()-started)
			}
		}
		p.Unplug(false)
	})
}

// Each Locker finds in work's context the lease that work has, and the hooks get the same one.
func TestLeaseFrom_EachKind(t *testing.T) {
	for what, of := range more(map[string]func(c *holdfast.Client, name string) holdfast.Locker{
		"stripe":  func(c *holdfast.Client, name string) holdfast.Locker { return c.Striped(name, 4).For("key") },
		"WLocker": func(c *holdfast.Client, name string) holdfast.Locker { return c.RWMutex(name).WLocker() },
		"permits": func(c *holdfast.Client, _ string) holdfast.Locker { return c.PermitSemaphore("permits").Locker(2) },
	}) {
		locker := func(c *holdfast.Client) holdfast.Locker { return of(c, "one") }
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			must(t, errOf(p.PermitSemaphore("permits").TrySetPermits(t.Context(), 9)))
			var acquired, left holdfast.Handle
			var mine *holdfast.Lease
			err := holdfast.Do(t.Context(), locker(p.Client), func(ctx context.Context) error {
				l, ok := holdfast.LeaseFrom(ctx, locker(p.Client)) // another value of the same lock
				if !ok || l.Err() != nil || l.HoldCount() != 1 || !l.Deadline().After(time.Now()) {
					t.Errorf("%v: %v, %d leases until %v", ok, l.Err(), l.HoldCount(), l.Deadline())
				}
				if other, found := holdfast.LeaseFrom(ctx, locker(q.Client)); found || other != nil {
					t.Errorf("another Client finds a lease of %v", other.Owner())
				}
				mine = l
				return nil
			}, holdfast.OnAcquire(func(_ context.Context, held holdfast.Handle) { acquired = held }),
				holdfast.OnExit(func(_ context.Context, held holdfast.Handle, _ error) { left = held }))
			if err != nil || acquired != holdfast.Handle(mine) || left != holdfast.Handle(mine) {
				t.Errorf("%v: hooks %v and %v, work %v", err, acquired, left, mine)
			}
			world.Equal(t, mine.HoldCount(), 0, "%d leases after the release")
			if _, found := holdfast.LeaseFrom(t.Context(), locker(p.Client)); found {
				t.Error("found in a context without a lease")
			}
			for _, key := range w.Mini.Keys() { // what stays of permits and stripes
				if key == "permits" || strings.HasPrefix(key, "holdfast_") {
					w.Mini.Del(key)
				}
			}
		})
	}
}

// A lock finds its own innermost lease, whatever other leases the context carries. So does a Lockable that embeds the
// lock, and one that only has the lock inside finds none.
func TestLeaseFrom_SeveralLeases(t *testing.T) {
	type embeds struct{ *holdfast.Mutex }
	type wraps struct{ holdfast.Locker }
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		outer := w.Lock(t.Context(), p.MyLock)
		inner := w.Lock(outer.Context(t.Context()), p.MyLock)
		other := w.Lock(t.Context(), p.Mutex("other"))
		ctx := other.Context(inner.Context(outer.Context(t.Context())))
		if l, ok := holdfast.LeaseFrom(ctx, p.MyLock); !ok || l != inner || l.HoldCount() != 2 || l.Token() != outer.Token() {
			t.Errorf("found %p (%v), want the inner lease %p of %p", l, ok, inner, outer)
		}
		if l, ok := holdfast.LeaseFrom(ctx, embeds{p.Mutex("other")}); !ok || l != other {
			t.Errorf("found %p (%v), want %p", l, ok, other)
		}
		for what, locker := range map[string]holdfast.Locker{
			"another name": p.Mutex("third"), "another kind": p.FairMutex(world.Name), "a reader": p.RWMutex(world.Name).RLocker(),
			"no name": p.Mutex(""), "no permits": p.PermitSemaphore("").Locker(1), "no writer": p.RWMutex(""), "no Client": new(holdfast.Mutex),
			"nothing": nil, "wrapped": wraps{p.MyLock},
		} {
			if l, ok := holdfast.LeaseFrom(ctx, locker); ok || l != nil {
				t.Errorf("%s: found %p", what, l)
			}
		}
		if _, ok := holdfast.LeaseFrom(lease.Bare(ctx), p.MyLock); ok {
			t.Error("found in a bare context")
		}
		rw := p.RWMutex("both")
		write := w.Lock(ctx, rw)
		if _, ok := holdfast.LeaseFrom(write.Context(ctx), rw.RLocker()); ok {
			t.Error("a write lease is found as a reader's")
		}
		read := w.Lock(write.Context(ctx), rw.RLocker())
		both := read.Context(write.Context(ctx))
		ofWriter, _ := holdfast.LeaseFrom(both, rw)
		if ofReader, _ := holdfast.LeaseFrom(both, rw.RLocker()); ofWriter != write || ofReader != read {
			t.Errorf("a reader under a writer: found %p and %p, want %p and %p", ofWriter, ofReader, write, read)
		}
		w.Release(read, write)
		w.Release(inner)
		if l, ok := holdfast.LeaseFrom(ctx, p.MyLock); !ok || l != inner || !errors.Is(l.Err(), holdfast.ErrReleased) || l.HoldCount() != 0 {
			t.Errorf("after its release: %p (%v)", l, ok)
		}
		w.Release(outer, other)
	})
}

// A MultiLock finds its own lease, and so do its locks. A Quorum finds its own.
func TestLeaseFrom_Wholes(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		a, b := p.Mutex("a"), p.FairMutex("b")
		multi, quorum := holdfast.NewMultiLock(a, b), holdfast.NewQuorum("q", []*holdfast.Client{p.Client})
		err := holdfast.Do(t.Context(), multi, func(ctx context.Context) error {
			l, ok := holdfast.LeaseFrom(ctx, holdfast.NewMultiLock(b, a))
			ofA, okA := holdfast.LeaseFrom(ctx, a)
			ofB, okB := holdfast.LeaseFrom(ctx, b)
			if !ok || !okA || !okB || l.Tokens()[0] != ofA.Token() || l.Tokens()[1] != ofB.Token() {
				t.Errorf("found %v, %v, %v", ok, okA, okB)
			}
			if _, found := holdfast.LeaseFrom(ctx, holdfast.NewMultiLock(a)); found {
				t.Error("another MultiLock finds it")
			}
			if _, found := holdfast.LeaseFrom(ctx, quorum); found {
				t.Error("a Quorum finds it")
			}
			return nil
		})
		redistest.Check(t, err)
		err = holdfast.Do(t.Context(), quorum, func(ctx context.Context) error {
			l, ok := holdfast.LeaseFrom(ctx, quorum)
			if !ok || l.Err() != nil || l.Token() == 0 {
				t.Errorf("the Quorum's: %v", ok)
			}
			if _, found := holdfast.LeaseFrom(ctx, p.Mutex("q")); found {
				t.Error("the lock on a server finds a lease of the Quorum")
			}
			return nil
		})
		redistest.Check(t, err)
		for _, none := range []*holdfast.MultiLock{holdfast.NewMultiLock(), holdfast.NewMultiLock(a, a)} {
			if _, found := holdfast.LeaseFrom(t.Context(), none); found {
				t.Error("a MultiLock that cannot be used finds a lease")
			}
		}
		w.Mini.Del("holdfast_quorum")
	})
}
