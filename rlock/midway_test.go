// This file is about scripts that fail half-way, and scripts that the server forgets.

package rlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// whole fails the test if the lock's key has no expiry, more than one holder, or a count that is
// not between 1 and 9.
func whole(w *world.World, what string) {
	w.T.Helper()
	holders := w.Holders(world.Name)
	if len(holders) == 0 {
		return
	}
	if ttl := w.PTTL(world.Name); ttl == -1 || ttl == 0 {
		w.T.Errorf("%s: held by %q without an expiry (PTTL %v)", what, holders, ttl)
	}
	if len(holders) > 1 {
		w.T.Errorf("%s: held by %q", what, holders)
	}
	for _, h := range holders {
		if count := h[strings.LastIndexByte(h, '=')+1:]; count < "1" || count > "9" {
			w.T.Errorf("%s: held by %q", what, holders)
		}
	}
}

// Any command of any script may fail. No key is left without an expiry and no count without its
// owner, and the next call works again.
func TestEachCommandOfEachScriptFails(t *testing.T) {
	ctx := context.Background()
	type (
		leases = []*holdfast.Lease // the innermost first
		action = func() (*holdfast.Lease, error)
	)
	// Each scene makes what is there before, and an action that runs one script and returns the lease that it gets.
	for script, scene := range map[string]func(w *world.World, p *world.Process) (leases, action){
		world.LockRun: func(_ *world.World, p *world.Process) (leases, action) {
			return nil, func() (*holdfast.Lease, error) { return p.MyLock.TryLock(ctx) }
		},
		world.LockRun + ", held by another": func(w *world.World, p *world.Process) (leases, action) {
			return leases{w.Lock(ctx, p.MyLock)}, func() (*holdfast.Lease, error) { return p.MyLock.TryLock(ctx) }
		},
		world.RecountRun + ", up": func(w *world.World, p *world.Process) (leases, action) {
			l := w.Lock(ctx, p.MyLock)
			return leases{l}, func() (*holdfast.Lease, error) { return p.MyLock.Lock(l.Context(ctx)) }
		},
		world.RecountRun + ", down": func(w *world.World, p *world.Process) (leases, action) {
			l := w.Lock(ctx, p.MyLock)
			inner := w.Lock(l.Context(ctx), p.MyLock)
			return leases{inner, l}, func() (*holdfast.Lease, error) { return nil, inner.Release(ctx) }
		},
		world.RenewRun: func(w *world.World, p *world.Process) (leases, action) {
			l := w.Lock(ctx, p.MyLock)
			return leases{l}, func() (*holdfast.Lease, error) { return nil, l.Extend(ctx, time.Minute) }
		},
		world.FreeRun: func(w *world.World, p *world.Process) (leases, action) {
			l := w.Lock(ctx, p.MyLock)
			return leases{l}, func() (*holdfast.Lease, error) { return nil, l.Release(ctx) }
		},
		world.ReleaseRun: func(w *world.World, p *world.Process) (leases, action) {
			w.Crowd(p, w.Process())
			l := w.Lock(ctx, p.MyLock)
			return leases{l}, func() (*holdfast.Lease, error) { return nil, l.Release(ctx) }
		},
		world.MoveRun: func(w *world.World, p *world.Process) (leases, action) {
			owner := detach(w.T, w.Lock(ctx, p.MyLock))
			return nil, func() (*holdfast.Lease, error) { return p.MyLock.Attach(ctx, owner) }
		},
		world.StateRun: func(w *world.World, p *world.Process) (leases, action) {
			return leases{w.Lock(ctx, p.MyLock)}, func() (*holdfast.Lease, error) { _, err := p.MyLock.Holder(ctx); return nil, err }
		},
	} {
		t.Run(script, func(t *testing.T) {
			for k, fired := 1, true; fired; k++ {
				world.Play(t, func(t *testing.T, w *world.World) {
					p := w.Process()
					has, act := scene(w, p)
					w.At(time.Second)
					disarm := w.Mini.FailInside(k)
					got, err := act()
					fired = disarm()
					what := fmt.Sprintf("command %d fails (%v)", k, err)
					whole(w, what)
					for _, l := range append(leases{got}, has...) {
						_ = l.Release(ctx) // of nil too
						whole(w, what+", then released")
					}
					time.Sleep(35 * time.Second)
					w.WantFree()
					w.Release(w.Lock(ctx, p.MyLock))
				})
			}
		})
	}
}

// A renewal that fails in Redis is tried again.
func TestARenewalFails(t *testing.T) {
	for k, fired := 1, true; fired; k++ {
		world.Play(t, func(t *testing.T, w *world.World) {
			p := w.Process()
			l := w.Lock(t.Context(), p.MyLock)
			w.At(9 * time.Second)
			disarm := w.Mini.FailInside(k)
			w.At(12 * time.Second)
			fired = disarm()
			whole(w, fmt.Sprint("command ", k))
			if ttl := w.PTTL(world.Name); ttl < 27*time.Second {
				t.Errorf("command %d: PTTL %v", k, ttl)
			}
			w.Release(l)
		})
	}
}
