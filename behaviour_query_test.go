// This file is about what a lock can be asked, and what an owner that does not hold the lock may
// not do.

package holdfast_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
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
		if err != nil {
			t.Error(err)
		}
	}
	return a
}

func TestQueries(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		l := w.lock(t.Context(), p.mutex)
		owner := l.Owner()
		w.release(l)
		stranger := w.lock(t.Context(), p.Mutex("elsewhere"))

		// want asks the holder's Client and another Client. It asks for the owner as another
		// process parses it, for a stranger, and for no owner.
		want := func(when string, want answers) {
			t.Helper()
			parsed, err := holdfast.ParseOwner(owner.String())
			if err != nil || parsed != owner {
				t.Fatalf("parsed %v: %v", parsed, err)
			}
			for _, m := range []*rlock.Mutex{p.mutex, q.mutex} {
				if got := ask(t, m, parsed); got != want {
					t.Errorf("%s: %+v, want %+v", when, got, want)
				}
				other := want
				other.held, other.count = false, 0
				if got := ask(t, m, stranger.Owner()); got != other {
					t.Errorf("%s, of a stranger: %+v, want %+v", when, got, other)
				}
				if got := ask(t, m, holdfast.Owner{}); got != other {
					t.Errorf("%s, of nobody: %+v, want %+v", when, got, other)
				}
			}
		}
		want("before", answers{})
		outer := w.lock(t.Context(), p.mutex)
		owner = outer.Owner()
		w.at(time.Second)
		want("held", answers{true, 29 * time.Second, owner, true, 1})
		inner := w.lock(outer.Context(t.Context()), p.mutex)
		want("nested", answers{true, 30 * time.Second, owner, true, 2})
		w.release(inner)
		want("after the inner release", answers{true, 30 * time.Second, owner, true, 1})
		w.release(outer)
		want("after", answers{})
		w.release(stranger)
	})
}

func TestWithoutExpiry(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		if d, err := p.mutex.Remaining(t.Context()); d != 0 || err != nil {
			t.Errorf("no key: %v, %v", d, err)
		}
		const java = "6e0e2d3c-0000-4000-8000-000000000000:37"
		w.rdb.HSet(t.Context(), name, java, 2)
		if d, err := p.mutex.Remaining(t.Context()); d != rlock.NoExpiry || err != nil {
			t.Errorf("no expiry: %v, %v", d, err)
		}
		holder, err := p.mutex.Holder(t.Context())
		if err != nil || holder.String() != java {
			t.Errorf("holder %v, %v", holder, err)
		}
		w.rdb.Del(t.Context(), name)
		w.rdb.HSet(t.Context(), name, "somebody", 1)
		_, err = p.mutex.Holder(t.Context())
		wantErr(t, err, holdfast.ErrBadArgument)
		w.rdb.Del(t.Context(), name)
	})
}

func TestForceRelease(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		if existed, err := q.mutex.ForceRelease(t.Context()); existed || err != nil {
			t.Errorf("of a free lock: %v, %v", existed, err)
		}
		messages := w.messages(channel)
		outer := w.lock(t.Context(), p.mutex)
		inner := w.lock(outer.Context(t.Context()), p.mutex)
		outerCtx, innerCtx := outer.Context(t.Context()), inner.Context(t.Context())
		w.at(time.Second)
		if existed, err := q.mutex.ForceRelease(t.Context()); !existed || err != nil {
			t.Errorf("of a held lock: %v, %v", existed, err)
		}
		w.wantFree()
		wantEnd(t, outerCtx, nil) // another Client's lease ends at its next renewal
		<-outerCtx.Done()
		within(t, "told at", w.now(), 9900*time.Millisecond, 10_100*time.Millisecond)
		wantEnd(t, outerCtx, holdfast.ErrLost)
		wantEnd(t, innerCtx, holdfast.ErrLost)
		w.at(60 * time.Second)
		w.wantFree() // no renewal has made the lock anew
		wantErr(t, inner.Release(t.Context()), holdfast.ErrLost)
		if got := strings.Join(messages(), ", "); got != "1s 0" {
			t.Errorf("messages %q", got)
		}
	})
}

func TestForceReleaseOfOnesOwn(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		other := w.lock(t.Context(), p.Mutex("other"))
		ctx := l.Context(t.Context())
		if existed, err := p.Mutex(name).ForceRelease(t.Context()); !existed || err != nil {
			t.Errorf("%v, %v", existed, err)
		}
		wantEnd(t, ctx, holdfast.ErrLost)
		if other.Err() != nil {
			t.Errorf("another lock: %v", other.Err())
		}
		w.at(time.Minute)
		w.wantFree()
		w.release(other)
	})
}

func TestForceReleaseLetsAWaiterIn(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q, r := w.process(), w.process(), w.process()
		l := w.lock(t.Context(), p.mutex)
		a := w.goLock(t.Context(), q.mutex)
		w.at(2 * time.Second)
		if _, err := r.mutex.ForceRelease(t.Context()); err != nil {
			t.Fatal(err)
		}
		next, err := a.result()
		if err != nil {
			t.Fatal(err)
		}
		within(t, "in at", a.at, 2*time.Second, 2005*time.Millisecond)
		w.at(15 * time.Second) // the old holder's renewal has come and gone
		wantErr(t, l.Err(), holdfast.ErrLost)
		w.wantHolder(next.Owner(), 1)
		w.release(next)
	})
}

// ForceRelease ends the holder's lease and lets in a waiter of the same Client. That waiter keeps
// its lock.
func TestForceReleaseSparesTheNextHolder(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		a := w.goLock(t.Context(), p.mutex)
		w.at(time.Second)
		answered := make(chan struct{})
		p.on(releaseRun, 1, redistest.HoldReply(answered)) // the message comes before this reply
		forced := w.try(func() (*holdfast.Lease, error) {
			_, err := p.mutex.ForceRelease(context.Background())
			return nil, err
		})
		next, err := a.result()
		if err != nil {
			t.Fatal(err)
		}
		close(answered)
		if _, err := forced.result(); err != nil {
			t.Fatal(err)
		}
		wantErr(t, l.Err(), holdfast.ErrLost)
		if next.Err() != nil {
			t.Errorf("the next holder's lease has ended: %v", next.Err())
		}
		w.wantHolder(next.Owner(), 1)
		next.Release(t.Context())
		w.at(40 * time.Second)
	})
}

// A release by an owner that does not hold the lock changes nothing and says so.
func TestReleaseByAStranger(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		expired := w.lock(t.Context(), p.Mutex(name, holdfast.Fixed(time.Second)))
		w.at(2 * time.Second)
		forced := w.lock(t.Context(), p.mutex)
		if _, err := q.mutex.ForceRelease(t.Context()); err != nil {
			t.Fatal(err)
		}
		holder := w.lock(t.Context(), q.mutex)
		w.at(3 * time.Second)
		before := w.mini.Snapshot()

		refused := func(what string, err error, owner holdfast.Owner) {
			t.Helper()
			wantErr(t, err, holdfast.ErrLost)
			if err != nil && !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %q does not name the key", what, err)
			}
			if err != nil && strings.Contains(err.Error(), owner.String()) {
				t.Errorf("%s: %q tells the whole owner", what, err)
			}
			if after := w.mini.Snapshot(); after != before {
				t.Errorf("%s: before\n%s\nafter\n%s", what, before, after)
			}
		}
		refused("after expiry", expired.Release(t.Context()), expired.Owner())
		refused("after force release", forced.Release(t.Context()), forced.Owner())
		parsed, err := holdfast.ParseOwner("6e0e2d3c-0000-4000-8000-000000000000:1")
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.mutex.Attach(t.Context(), parsed)
		refused("a parsed owner", err, parsed)
		if err != nil && !strings.Contains(err.Error(), parsed.Short()) {
			t.Errorf("%q does not name the owner", err)
		}
		w.release(holder)
	})
}

// The error of a release that finds the lock gone names the owner, shortened.
func TestTheErrorNamesTheOwner(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		w.mini.Del(name)
		err := l.Release(t.Context())
		wantErr(t, err, holdfast.ErrLost)
		if !strings.Contains(err.Error(), l.Owner().Short()) {
			t.Errorf("%q does not name %s", err, l.Owner().Short())
		}
	})
}
