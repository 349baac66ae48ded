// This file is about what a lock can be asked, and what an owner that does not hold the lock may not do.

package rlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/rlock"
)

// answers has all that one mutex says of the lock.
type answers struct {
	locked    bool
	remaining time.Duration
	holder    holdfast.Owner
	held      bool
	count     int
}

func ask(t *testing.T, m *rlock.Mutex, owner holdfast.Owner) answers {
	t.Helper()
	var a answers
	var errs [5]error
	a.locked, errs[0] = m.Locked(t.Context())
	a.remaining, errs[1] = m.Remaining(t.Context())
	a.holder, errs[2] = m.Holder(t.Context())
	a.held, errs[3] = m.HeldBy(t.Context(), owner)
	a.count, errs[4] = m.HoldCount(t.Context(), owner)
	for _, err := range errs {
		redistest.Check(t, err)
	}
	return a
}

// Each query answers for the holder's Client as for another, whoever is asked for: the owner as
// another process parses it, a stranger, and no owner.
func TestQueries(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		owner := l.Owner()
		w.Release(l)
		stranger := w.Lock(t.Context(), p.Mutex("elsewhere"))
		want := func(when string, want answers) {
			t.Helper()
			parsed, err := holdfast.ParseOwner(owner.String())
			if err != nil || parsed != owner {
				t.Fatalf("parsed %v: %v", parsed, err)
			}
			other := want
			other.held, other.count = false, 0
			for _, m := range []*rlock.Mutex{p.MyLock, q.MyLock} {
				for of, want := range map[holdfast.Owner]answers{parsed: want, stranger.Owner(): other, {}: other} {
					world.Equal(t, ask(t, m, of), want, "%+v, want %+v (%s, of %v)", want, when, of)
				}
			}
		}
		want("before", answers{})
		outer := w.Lock(t.Context(), p.MyLock)
		owner = outer.Owner()
		w.At(time.Second)
		want("held", answers{true, 29 * time.Second, owner, true, 1})
		inner := w.Lock(outer.Context(t.Context()), p.MyLock)
		want("nested", answers{true, 30 * time.Second, owner, true, 2})
		w.Release(inner)
		want("after the inner release", answers{true, 30 * time.Second, owner, true, 1})
		w.Release(outer)
		want("after", answers{})
		w.Release(stranger)

		const java = "6e0e2d3c-0000-4000-8000-000000000000:37"
		w.RDB.HSet(t.Context(), world.Name, java, 2) // without an expiry
		parsed, err := holdfast.ParseOwner(java)
		must(t, err)
		world.Equal(t, ask(t, p.MyLock, parsed), (answers{true, holdfast.NoExpiry, parsed, true, 2}), "of Java: %+v")
		w.Mini.Del(world.Name)
		w.RDB.HSet(t.Context(), world.Name, "somebody", 1)
		world.WantErr(t, redistest.Err(p.MyLock.Holder(t.Context())), holdfast.ErrBadArgument)
		w.Mini.Del(world.Name)
	})
}

// ForceRelease frees the lock, whoever holds it, and lets a waiter in at once. A lease of the same
// Client ends at once, with all leases on its hold, and one of another Client with its next renewal. From
// others than its holder, it takes nothing.
func TestForceRelease(t *testing.T) {
	for _, own := range []bool{false, true} {
		play(t, fmt.Sprint("of one's own: ", own), func(t *testing.T, w *world.World) {
			p, q, r := w.Process(), w.Process(), w.Process()
			by := r
			if own {
				by = p
			}
			force := func(want bool, from ...holdfast.Owner) {
				t.Helper()
				if existed, err := by.Mutex(world.Name).ForceRelease(t.Context(), from...); existed != want || err != nil {
					t.Errorf("%v, %v, want %v", existed, err, want)
				}
			}
			force(false)
			outer, other := w.Lock(t.Context(), p.MyLock), w.Lock(t.Context(), p.Mutex("other"))
			inner := w.Lock(outer.Context(t.Context()), p.MyLock)
			a := w.GoLock(t.Context(), q.MyLock)
			w.At(2 * time.Second)
			force(false, holdfast.Owner{}, other.Owner())
			force(true, other.Owner(), outer.Owner())
			next := granted(t, a)
			world.Within(t, "in at", a.At, 2*time.Second, 2005*time.Millisecond)
			if !own {
				must(t, inner.Err())
			}
			<-outer.Done()
			told := map[bool]time.Duration{true: 2 * time.Second, false: 10 * time.Second}[own]
			world.Within(t, "told at", w.Now(), told-100*time.Millisecond, told+100*time.Millisecond)
			w.At(15 * time.Second) // a renewal of the old hold would have come
			for _, l := range []*holdfast.Lease{outer, inner} {
				world.WantErr(t, l.Err(), holdfast.ErrLost)
				world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
			}
			w.WantHolder(next.Owner(), 1)
			w.Release(next, other)
		})
	}
}

// ForceRelease ends the holder's lease and lets in a waiter of the same Client. That waiter keeps its lock.
func TestForceReleaseSparesTheNextHolder(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		a := w.GoLock(t.Context(), p.MyLock)
		w.At(time.Second)
		answered := make(chan struct{})
		p.On(world.ReleaseRun, 1, redistest.HoldReply(answered)) // the message comes before this reply
		forced := w.Try(func() (*holdfast.Lease, error) {
			_, err := p.MyLock.ForceRelease(context.Background())
			return nil, err
		})
		next := granted(t, a)
		close(answered)
		granted(t, forced)
		world.WantErr(t, l.Err(), holdfast.ErrLost)
		must(t, next.Err())
		w.WantHolder(next.Owner(), 1)
		next.Release(t.Context())
		w.At(40 * time.Second)
	})
}
