// The lives of the locks, semaphores and latches that meet mishaps in lost_test.go.

package faults

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
)

// begin calls f on a goroutine of its own, and returns when f has had the time to begin to wait. result
// returns what f returns.
func begin[T any](f func() (T, error)) (result func() (T, error)) {
	var value T
	done := make(chan error, 1)
	go func() {
		var err error
		value, err = f()
		done <- err
	}()
	time.Sleep(50 * time.Millisecond)
	return func() (T, error) {
		select {
		case err := <-done:
			return value, err
		case <-time.After(time.Minute):
			return *new(T), errors.New("it has not returned")
		}
	}
}

// beside calls f while wait, another call, waits for it. It returns what wait returns.
func beside[T any](wait func() (T, error), f func() error) (T, error) {
	result := begin(wait)
	err := f()
	value, waitErr := result()
	return value, errors.Join(err, waitErr)
}

// get does a call that returns a value.
func get[T any](u *unlucky, what string, call func(ctx context.Context) (T, error)) (value T) {
	u.t.Helper()
	u.do(what, func() (err error) { value, err = call(u.ctx); return err })
	return value
}

// refused fails the test unless err matches target.
func (u *unlucky) refused(what string, err, target error) {
	u.t.Helper()
	u.want(errors.Is(err, target), "%s = %v, want %v", what, err, target)
}

// changes are the methods that do more than ask.
var changes = []string{"Lock", "TryLock", "RLock", "TryRLock", "Attach", "ForceRelease", "RForceRelease",
	"Acquire", "TryAcquire", "Drain", "TrySetPermits", "TrySetCount", "CountDown", "Delete", "Await", "Reset"}

// ask asks mine all that can be asked. The answers must be those that theirs gives. about has the arguments
// beside the context, by their types.
func (u *unlucky) ask(mine, theirs any, about ...any) {
	for i := range reflect.TypeOf(mine).NumMethod() {
		m := reflect.TypeOf(mine).Method(i)
		in, out := m.Type.NumIn(), m.Type.NumOut()
		if slices.Contains(changes, m.Name) || in < 2 || m.Type.In(1) != reflect.TypeFor[context.Context]() ||
			out < 2 || m.Type.Out(out-1) != reflect.TypeFor[error]() {
			continue
		}
		args := []reflect.Value{reflect.ValueOf(u.ctx)}
		for _, arg := range about {
			if in == 3 && m.Type.In(2) == reflect.TypeOf(arg) {
				args = append(args, reflect.ValueOf(arg))
			}
		}
		answer := func(of any) ([]any, error) {
			var all []any
			for _, v := range reflect.ValueOf(of).Method(i).Call(args) {
				all = append(all, v.Interface())
			}
			err, _ := all[out-1].(error)
			return all[:out-1], err
		}
		got := get(u, m.Name, func(context.Context) ([]any, error) { return answer(mine) })
		want, err := answer(theirs)
		u.must(err)
		if left, ok := want[0].(time.Duration); ok {
			u.want((got[0].(time.Duration)-left).Abs() < 6*lateness, "it says %v, want %v", got, want)
		} else {
			u.want(reflect.DeepEqual(got, want), "it says %v, want %v", got, want)
		}
	}
}

// counting is a lock that counts its holds.
type counting interface {
	HoldCount(context.Context, holdfast.Owner) (int, error)
}

// lockScene is the life of a lock: of ours, and of one of the onlooker's that excludes it.
type lockScene struct {
	*unlucky
	kind         lockertest.Kind
	mine, theirs holdfast.Locker
	count        func(context.Context, holdfast.Owner) (int, error)
	last         int64 // token
}

// granted fails the test unless the lease is a new grant.
func (s *lockScene) granted(l *holdfast.Lease) {
	s.t.Helper()
	s.want(!s.kind.Fenced || l.Token() > s.last, "token %d after %d", l.Token(), s.last)
	s.last = l.Token()
}

// held fails the test unless l holds the lock, so often, and nobody else may have it.
func (s *lockScene) held(l *holdfast.Lease, times int) {
	s.t.Helper()
	s.must(l.Err())
	if s.kind.Reentrant {
		n, err := s.count(s.ctx, l.Owner())
		s.must(err)
		s.want(n == times, "the count is %d, want %d", n, times)
	}
	s.taken()
}

// taken fails the test unless nobody else may have the lock.
func (s *lockScene) taken() {
	s.t.Helper()
	_, err := s.theirs.TryLock(s.ctx)
	s.refused("TryLock of another", err, holdfast.ErrBusy)
}

// release releases the lease. The lock is free then.
func (s *lockScene) release(l *holdfast.Lease) {
	s.t.Helper()
	s.do("Release", func() error { return l.Release(s.ctx) })
	s.refused("a second Release", l.Release(s.ctx), holdfast.ErrReleased)
	next, err := s.theirs.TryLock(s.ctx)
	s.must(err)
	if s.kind.Rival == nil {
		s.granted(next)
	}
	s.must(next.Release(s.ctx))
}

// lockLife has every way to take a lock and to leave it.
func (u *unlucky) lockLife(kind lockertest.Kind) {
	s := &lockScene{unlucky: u, kind: kind, mine: kind.Locker(u.Client, u.name), theirs: kind.Locker(u.onlooker, u.name)}
	peer := s.theirs
	s.count = u.onlooker.RWMutex(u.name).RHoldCount
	if c, ok := peer.(counting); ok {
		s.count = c.HoldCount
	}
	if kind.Rival != nil {
		s.theirs = kind.Rival(u.onlooker, u.name)
	}
	if kind.Prepare != nil {
		u.must(kind.Prepare(u.ctx, u.onlooker, u.name))
	}
	l := s.nested()
	s.ask(s.mine, peer, l.Owner())
	l = s.takingTurns(l)
	s.release(l)
	l = get(u, "TryLock", s.mine.TryLock)
	s.granted(l)
	s.held(l, 1)
	l = s.left(l)
	s.release(l)
	if m, ok := s.mine.(interface {
		ForceRelease(context.Context, ...holdfast.Owner) (bool, error)
	}); ok {
		l, err := s.theirs.Lock(u.ctx)
		u.must(err)
		u.want(get(u, "ForceRelease", func(ctx context.Context) (bool, error) { return m.ForceRelease(ctx, l.Owner()) }), "it says false")
		u.refused("Release of what was released by force", l.Release(u.ctx), holdfast.ErrLost)
	}
}

// nested locks, and again under that.
func (s *lockScene) nested() *holdfast.Lease {
	l := get(s.unlucky, "Lock", s.mine.Lock)
	s.granted(l)
	s.held(l, 1)
	if s.kind.Reentrant {
		inner := get(s.unlucky, "Lock under it", func(ctx context.Context) (*holdfast.Lease, error) { return s.mine.Lock(l.Context(ctx)) })
		s.held(l, 2)
		s.do("Release of the inner", func() error { return inner.Release(s.ctx) })
		s.held(l, 1)
	}
	s.do("Extend", func() error { return l.Extend(s.ctx, time.Minute) })
	if s.virtual {
		for range 2 {
			s.do("the renewals", func() error { time.Sleep(27 * time.Second); return nil })
		}
	}
	s.held(l, 1)
	return l
}

// takingTurns hands the lock over to another process and back.
func (s *lockScene) takingTurns(l *holdfast.Lease) *holdfast.Lease {
	next := get(s.unlucky, "Release with one who waits", func(ctx context.Context) (*holdfast.Lease, error) {
		return beside(func() (*holdfast.Lease, error) { return s.theirs.Lock(ctx) }, func() error { return l.Release(ctx) })
	})
	if s.kind.Rival == nil {
		s.granted(next)
	}
	s.whole(next)
	s.do("TryLock of what another has", func() error {
		_, err := s.mine.TryLock(s.ctx)
		s.refused("TryLock", err, holdfast.ErrBusy)
		return nil
	})
	l = get(s.unlucky, "Lock that waits", func(ctx context.Context) (*holdfast.Lease, error) {
		return beside(func() (*holdfast.Lease, error) { return s.mine.Lock(ctx) }, func() error { return next.Release(ctx) })
	})
	s.granted(l)
	s.whole(l)
	s.held(l, 1)
	return l
}

// whole has Redis keep what was handed over for the whole lease: at first it keeps it for the time of a place, and
// a failover whose first vote fails takes longer than that.
func (s *lockScene) whole(l *holdfast.Lease) { s.must(l.Extend(s.ctx, time.Minute)) }

// left leaves the lock for a while, in the ways in which it stays held.
func (s *lockScene) left(l *holdfast.Lease) *holdfast.Lease {
	if m, ok := s.mine.(interface {
		Attach(context.Context, holdfast.Owner) (*holdfast.Lease, error)
	}); ok {
		owner := get(s.unlucky, "Detach", l.Detach)
		s.taken()
		l = get(s.unlucky, "Attach", func(ctx context.Context) (*holdfast.Lease, error) { return m.Attach(ctx, owner) })
		s.held(l, 1)
	}
	if s.kind.Stays && s.virtual {
		began := time.Now()
		s.do("AtLeast", func() error { return l.AtLeast(s.ctx, 20*time.Second) })
		s.do("Release of what stays", func() error { return l.Release(s.ctx) })
		time.Sleep(time.Until(began.Add(20*time.Second - time.Millisecond)))
		s.taken()
		l = get(s.unlucky, "Lock of what stayed", s.mine.Lock)
		s.granted(l)
	}
	return l
}

// downgradeLife locks for writing, and goes on as a reader afterwards.
func (u *unlucky) downgradeLife() {
	m, now := u.RWMutex(u.name), u.onlooker.RWMutex(u.name)
	counts := func(l *holdfast.Lease, writes, reads int) {
		u.t.Helper()
		wrote, err := now.HoldCount(u.ctx, l.Owner())
		u.must(err)
		read, err := now.RHoldCount(u.ctx, l.Owner())
		u.must(err)
		u.want(wrote == writes && read == reads, "the counts are %d and %d, want %d and %d", wrote, read, writes, reads)
	}
	w := get(u, "Lock", m.Lock)
	counts(w, 1, 0)
	r := get(u, "RLock under it", func(ctx context.Context) (*holdfast.Lease, error) { return m.RLock(w.Context(ctx)) })
	counts(w, 1, 0)
	counts(r, 0, 1)
	u.do("Release of the writer", func() error { return w.Release(u.ctx) })
	counts(r, 0, 1)
	u.do("Release of the reader", func() error { return r.Release(u.ctx) })
	counts(r, 0, 0)
	l, err := now.RLock(u.ctx)
	u.must(err)
	u.want(get(u, "RForceRelease", func(ctx context.Context) (bool, error) { return m.RForceRelease(ctx) }), "it says false")
	u.refused("Release of what was released by force", l.Release(u.ctx), holdfast.ErrLost)
}

// semaphoreLife has every way to change a Semaphore.
func (u *unlucky) semaphoreLife() {
	s, now := u.Semaphore(u.name), u.onlooker.Semaphore(u.name)
	free := func(want int) {
		u.t.Helper()
		n, err := now.Available(u.ctx)
		u.must(err)
		u.want(n == want, "%d permits are free, want %d", n, want)
	}
	set := func(ctx context.Context) (bool, error) { return s.TrySetPermits(ctx, 3) }
	u.want(get(u, "TrySetPermits", set), "it says false")
	free(3)
	u.want(!get(u, "TrySetPermits again", set), "it says true")
	u.do("Acquire", func() error { return s.Acquire(u.ctx, 2) })
	free(1)
	u.do("TryAcquire", func() error { return s.TryAcquire(u.ctx, 1) })
	free(0)
	u.do("TryAcquire of none", func() error { u.refused("TryAcquire", s.TryAcquire(u.ctx, 1), holdfast.ErrBusy); return nil })
	get(u, "Release with one who waits", func(ctx context.Context) (any, error) {
		return beside(func() (any, error) { return nil, now.Acquire(ctx, 2) }, func() error { return s.Release(ctx, 2) })
	})
	free(0)
	get(u, "Acquire that waits", func(ctx context.Context) (any, error) {
		return beside(func() (any, error) { return nil, s.Acquire(ctx, 1) }, func() error { return now.Release(ctx, 2) })
	})
	free(1)
	u.do("AddPermits", func() error { return s.AddPermits(u.ctx, 2) })
	free(3)
	u.ask(s, now)
	u.want(get(u, "Drain", s.Drain) == 3, "it says another number than 3")
	free(0)
}

// permitLife has every way to change a PermitSemaphore that lockLife has not.
func (u *unlucky) permitLife() {
	p, now := u.PermitSemaphore(u.name), u.onlooker.PermitSemaphore(u.name)
	free := func(want int) {
		u.t.Helper()
		n, err := now.Available(u.ctx)
		u.must(err)
		u.want(n == want, "%d permits are free, want %d", n, want)
	}
	u.want(get(u, "TrySetPermits", func(ctx context.Context) (bool, error) { return p.TrySetPermits(ctx, 3) }), "it says false")
	free(3)
	u.do("SetPermits", func() error { return p.SetPermits(u.ctx, 4) })
	free(4)
	u.do("AddPermits", func() error { return p.AddPermits(u.ctx, -1) })
	free(3)
	l := get(u, "Acquire", func(ctx context.Context) (*holdfast.Lease, error) { return p.Acquire(ctx, 2) })
	free(1)
	id := p.IDs(l)[0]
	u.do("UpdateLease", func() error { return p.UpdateLease(u.ctx, id, time.Minute) })
	u.ask(p, now, id)
	u.do("Release", func() error { return l.Release(u.ctx) })
	free(3)
	l = get(u, "TryAcquire", func(ctx context.Context) (*holdfast.Lease, error) { return p.TryAcquire(ctx, 1) })
	free(2)
	u.do("ReleaseID", func() error { return p.ReleaseID(u.ctx, p.IDs(l)[0]) })
	free(3)
	u.calm()
	u.refused("Release of what was released by its id", l.Release(u.ctx), holdfast.ErrLost)
}

// latchLife counts a latch down to zero.
func (u *unlucky) latchLife() {
	l, now := u.Latch(u.name), u.onlooker.Latch(u.name)
	leaves := func(want int64) {
		u.t.Helper()
		n, err := now.Count(u.ctx)
		u.must(err)
		u.want(n == want, "%d are left, want %d", n, want)
	}
	set := func(ctx context.Context) (bool, error) { return l.TrySetCount(ctx, 2) }
	for _, last := range []string{"CountDown to zero", "Wait"} {
		u.want(get(u, "TrySetCount", set), "it says false")
		leaves(2)
		u.want(get(u, "CountDown", l.CountDown) == 1, "it says another number than 1")
		leaves(1)
		u.ask(l, now)
		if last == "Wait" {
			get(u, last, func(ctx context.Context) (any, error) {
				return beside(func() (any, error) { return nil, l.Wait(ctx) }, func() error { _, err := now.CountDown(ctx); return err })
			})
		} else {
			u.want(get(u, last, l.CountDown) == 0, "it says another number than 0")
		}
		leaves(0)
	}
	u.want(get(u, "TrySetCount", set), "it says false")
	u.want(get(u, "Delete", l.Delete), "it says false")
	leaves(0)
}
