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
	// Each action runs one script, and returns the lease that it gets, if any.
	type stage struct {
		outer, inner *holdfast.Lease
		owner        holdfast.Owner
	}
	ctx := context.Background()
	for _, tc := range []struct {
		script string
		before func(w *world.World, p *world.Process) stage
		act    func(p *world.Process, s stage) (*holdfast.Lease, error)
	}{
		{world.LockRun, func(*world.World, *world.Process) stage { return stage{} },
			func(p *world.Process, _ stage) (*holdfast.Lease, error) { return p.MyLock.TryLock(ctx) }},
		{world.LockRun + ", held by another", func(w *world.World, p *world.Process) stage {
			return stage{outer: w.Lock(ctx, p.MyLock)}
		}, func(p *world.Process, _ stage) (*holdfast.Lease, error) { return p.MyLock.TryLock(ctx) }},
		{world.RecountRun + ", up", func(w *world.World, p *world.Process) stage {
			return stage{outer: w.Lock(ctx, p.MyLock)}
		}, func(p *world.Process, s stage) (*holdfast.Lease, error) { return p.MyLock.Lock(s.outer.Context(ctx)) }},
		{world.RecountRun + ", down", func(w *world.World, p *world.Process) stage {
			outer := w.Lock(ctx, p.MyLock)
			return stage{outer: outer, inner: w.Lock(outer.Context(ctx), p.MyLock)}
		}, func(_ *world.Process, s stage) (*holdfast.Lease, error) { return nil, s.inner.Release(ctx) }},
		{world.RenewRun, func(w *world.World, p *world.Process) stage {
			return stage{outer: w.Lock(ctx, p.MyLock)}
		}, func(_ *world.Process, s stage) (*holdfast.Lease, error) { return nil, s.outer.Extend(ctx, time.Minute) }},
		{world.FreeRun, func(w *world.World, p *world.Process) stage {
			return stage{outer: w.Lock(ctx, p.MyLock)}
		}, func(_ *world.Process, s stage) (*holdfast.Lease, error) { return nil, s.outer.Release(ctx) }},
		{world.ReleaseRun, func(w *world.World, p *world.Process) stage {
			w.Crowd(p, w.Process())
			return stage{outer: w.Lock(ctx, p.MyLock)}
		}, func(_ *world.Process, s stage) (*holdfast.Lease, error) { return nil, s.outer.Release(ctx) }},
		{world.MoveRun, func(w *world.World, p *world.Process) stage {
			owner, err := w.Lock(ctx, p.MyLock).Detach(ctx)
			if err != nil {
				w.T.Fatal(err)
			}
			return stage{owner: owner}
		}, func(p *world.Process, s stage) (*holdfast.Lease, error) { return p.MyLock.Attach(ctx, s.owner) }},
		{world.StateRun, func(w *world.World, p *world.Process) stage {
			return stage{outer: w.Lock(ctx, p.MyLock)}
		}, func(p *world.Process, _ stage) (*holdfast.Lease, error) {
			_, err := p.MyLock.Holder(ctx)
			return nil, err
		}},
	} {
		t.Run(tc.script, func(t *testing.T) {
			for k, fired := 1, true; fired; k++ {
				world.Play(t, func(t *testing.T, w *world.World) {
					p := w.Process()
					s := tc.before(w, p)
					w.At(time.Second)
					disarm := w.Mini.FailInside(k)
					got, err := tc.act(p, s)
					fired = disarm()
					what := fmt.Sprintf("command %d fails (%v)", k, err)
					whole(w, what)

					for _, l := range []*holdfast.Lease{got, s.inner, s.outer} {
						if l != nil {
							_ = l.Release(ctx)
							whole(w, what+", then released")
						}
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
