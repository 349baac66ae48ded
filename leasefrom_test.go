// This file is about LeaseFrom: which lease work finds in its context, for each kind of lock.

package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// Each Locker finds in work's context the lease that work has, and the hooks get the same one.
func TestLeaseFrom_EachKind(t *testing.T) {
	for what, locker := range map[string]func(c *holdfast.Client) holdfast.Locker{
		"mutex":      func(c *holdfast.Client) holdfast.Locker { return c.Mutex("one") },
		"fair mutex": func(c *holdfast.Client) holdfast.Locker { return c.FairMutex("one") },
		"stripe":     func(c *holdfast.Client) holdfast.Locker { return c.Striped("one", 4).For("key") },
		"writer":     func(c *holdfast.Client) holdfast.Locker { return c.RWMutex("one") },
		"WLocker":    func(c *holdfast.Client) holdfast.Locker { return c.RWMutex("one").WLocker() },
		"reader":     func(c *holdfast.Client) holdfast.Locker { return c.RWMutex("one").RLocker() },
		"permits":    func(c *holdfast.Client) holdfast.Locker { return c.PermitSemaphore("permits").Locker(2) },
	} {
		t.Run(what, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				if _, err := p.PermitSemaphore("permits").TrySetPermits(t.Context(), 9); err != nil {
					t.Fatal(err)
				}
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
				if mine.HoldCount() != 0 {
					t.Errorf("%d leases after the release", mine.HoldCount())
				}
				if _, found := holdfast.LeaseFrom(t.Context(), locker(p.Client)); found {
					t.Error("found in a context without a lease")
				}
				for _, key := range w.Mini.Keys() { // what stays of permits and stripes
					if key == "permits" || strings.HasPrefix(key, "holdfast_") {
						w.Mini.Del(key)
					}
				}
			})
		})
	}
}

// A lock finds its own innermost lease, whatever other leases the context carries.
func TestLeaseFrom_SeveralLeases(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		outer := w.Lock(t.Context(), p.MyLock)
		inner := w.Lock(outer.Context(t.Context()), p.MyLock)
		other := w.Lock(t.Context(), p.Mutex("other"))
		ctx := other.Context(inner.Context(outer.Context(t.Context())))
		if l, ok := holdfast.LeaseFrom(ctx, p.MyLock); !ok || l != inner || l.HoldCount() != 2 || l.Token() != outer.Token() {
			t.Errorf("found %p (%v), want the inner lease %p of %p", l, ok, inner, outer)
		}
		if l, ok := holdfast.LeaseFrom(ctx, p.Mutex("other")); !ok || l != other {
			t.Errorf("found %p (%v), want %p", l, ok, other)
		}
		for what, locker := range map[string]holdfast.Locker{
			"another name": p.Mutex("third"), "another kind": p.FairMutex(world.Name), "a reader": p.RWMutex(world.Name).RLocker(),
			"no name": p.Mutex(""), "no permits": p.PermitSemaphore("").Locker(1), "no writer": p.RWMutex(""), "no Client": new(holdfast.Mutex),
			"nothing": nil,
		} {
			if l, ok := holdfast.LeaseFrom(ctx, locker); ok || l != nil {
				t.Errorf("%s: found %p", what, l)
			}
		}
		if _, ok := holdfast.LeaseFrom(lease.Bare(ctx), p.MyLock); ok {
			t.Error("found in a bare context")
		}
		w.Release(inner)
		if l, ok := holdfast.LeaseFrom(ctx, p.MyLock); !ok || l != inner || !errors.Is(l.Err(), holdfast.ErrReleased) || l.HoldCount() != 0 {
			t.Errorf("after its release: %p (%v)", l, ok)
		}
		w.Release(outer, other)
	})
}

// A reader under a writer: each side finds its own lease.
func TestLeaseFrom_BothSides(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		rw := w.Process().RWMutex("both")
		write := w.Lock(t.Context(), rw)
		if _, ok := holdfast.LeaseFrom(write.Context(t.Context()), rw.RLocker()); ok {
			t.Error("a write lease is found as a reader's")
		}
		read := w.Lock(write.Context(t.Context()), rw.RLocker())
		ctx := read.Context(write.Context(t.Context()))
		if l, _ := holdfast.LeaseFrom(ctx, rw); l != write {
			t.Errorf("the writer's: %p, want %p", l, write)
		}
		if l, _ := holdfast.LeaseFrom(ctx, rw.RLocker()); l != read {
			t.Errorf("the reader's: %p, want %p", l, read)
		}
		w.Release(read, write)
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
		if err != nil {
			t.Error(err)
		}
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
		if err != nil {
			t.Error(err)
		}
		for _, none := range []*holdfast.MultiLock{holdfast.NewMultiLock(), holdfast.NewMultiLock(a, a)} {
			if _, found := holdfast.LeaseFrom(t.Context(), none); found {
				t.Error("a MultiLock that cannot be used finds a lease")
			}
		}
		w.Mini.Del("holdfast_quorum")
	})
}

// A Lockable that embeds a lock finds leases; one that only has the lock inside does not.
func TestLeaseFrom_OwnLockables(t *testing.T) {
	type embeds struct{ *holdfast.Mutex }
	type wraps struct{ holdfast.Locker }
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		err := holdfast.Do(t.Context(), embeds{p.MyLock}, func(ctx context.Context) error {
			if _, ok := holdfast.LeaseFrom(ctx, embeds{p.MyLock}); !ok {
				t.Error("the one that embeds finds nothing")
			}
			if _, ok := holdfast.LeaseFrom(ctx, wraps{p.MyLock}); ok {
				t.Error("the one that wraps finds a lease")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
