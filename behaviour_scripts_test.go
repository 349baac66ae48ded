// This file is about scripts that fail half-way, and scripts that the server forgets.

package holdfast_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// whole fails the test if the lock's key has no expiry, more than one holder, or a count that is
// not between 1 and 9.
func (w *world) whole(what string) {
	w.t.Helper()
	holders := w.holders(name)
	if len(holders) == 0 {
		return
	}
	if ttl := w.pttl(name); ttl == -1 || ttl == 0 {
		w.t.Errorf("%s: held by %q without an expiry (PTTL %v)", what, holders, ttl)
	}
	if len(holders) > 1 {
		w.t.Errorf("%s: held by %q", what, holders)
	}
	for _, h := range holders {
		if count := h[strings.LastIndexByte(h, '=')+1:]; count < "1" || count > "9" {
			w.t.Errorf("%s: held by %q", what, holders)
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
		before func(w *world, p *process) stage
		act    func(p *process, s stage) (*holdfast.Lease, error)
	}{
		{lockRun, func(*world, *process) stage { return stage{} },
			func(p *process, _ stage) (*holdfast.Lease, error) { return p.mutex.TryLock(ctx) }},
		{lockRun + ", held by another", func(w *world, p *process) stage {
			return stage{outer: w.lock(ctx, p.mutex)}
		}, func(p *process, _ stage) (*holdfast.Lease, error) { return p.mutex.TryLock(ctx) }},
		{recountRun + ", up", func(w *world, p *process) stage {
			return stage{outer: w.lock(ctx, p.mutex)}
		}, func(p *process, s stage) (*holdfast.Lease, error) { return p.mutex.Lock(s.outer.Context(ctx)) }},
		{recountRun + ", down", func(w *world, p *process) stage {
			outer := w.lock(ctx, p.mutex)
			return stage{outer: outer, inner: w.lock(outer.Context(ctx), p.mutex)}
		}, func(_ *process, s stage) (*holdfast.Lease, error) { return nil, s.inner.Release(ctx) }},
		{renewRun, func(w *world, p *process) stage {
			return stage{outer: w.lock(ctx, p.mutex)}
		}, func(_ *process, s stage) (*holdfast.Lease, error) { return nil, s.outer.Extend(ctx, time.Minute) }},
		{freeRun, func(w *world, p *process) stage {
			return stage{outer: w.lock(ctx, p.mutex)}
		}, func(_ *process, s stage) (*holdfast.Lease, error) { return nil, s.outer.Release(ctx) }},
		{releaseRun, func(w *world, p *process) stage {
			w.crowd(p, w.process())
			return stage{outer: w.lock(ctx, p.mutex)}
		}, func(_ *process, s stage) (*holdfast.Lease, error) { return nil, s.outer.Release(ctx) }},
		{moveRun, func(w *world, p *process) stage {
			owner, err := w.lock(ctx, p.mutex).Detach(ctx)
			if err != nil {
				w.t.Fatal(err)
			}
			return stage{owner: owner}
		}, func(p *process, s stage) (*holdfast.Lease, error) { return p.mutex.Attach(ctx, s.owner) }},
		{stateRun, func(w *world, p *process) stage {
			return stage{outer: w.lock(ctx, p.mutex)}
		}, func(p *process, _ stage) (*holdfast.Lease, error) { _, err := p.mutex.Holder(ctx); return nil, err }},
	} {
		t.Run(tc.script, func(t *testing.T) {
			for k, fired := 1, true; fired; k++ {
				play(t, func(t *testing.T, w *world) {
					p := w.process()
					s := tc.before(w, p)
					w.at(time.Second)
					disarm := w.mini.FailInside(k)
					got, err := tc.act(p, s)
					fired = disarm()
					what := fmt.Sprintf("command %d fails (%v)", k, err)
					w.whole(what)

					for _, l := range []*holdfast.Lease{got, s.inner, s.outer} {
						if l != nil {
							_ = l.Release(ctx)
							w.whole(what + ", then released")
						}
					}
					time.Sleep(35 * time.Second)
					w.wantFree()
					w.release(w.lock(ctx, p.mutex))
				})
			}
		})
	}
}

// A renewal that fails in Redis is tried again.
func TestARenewalFails(t *testing.T) {
	for k, fired := 1, true; fired; k++ {
		play(t, func(t *testing.T, w *world) {
			p := w.process()
			l := w.lock(t.Context(), p.mutex)
			w.at(9 * time.Second)
			disarm := w.mini.FailInside(k)
			w.at(12 * time.Second)
			fired = disarm()
			w.whole(fmt.Sprint("command ", k))
			if ttl := w.pttl(name); ttl < 27*time.Second {
				t.Errorf("command %d: PTTL %v", k, ttl)
			}
			w.release(l)
		})
	}
}

// A server may forget its scripts before every single call, and the calls still work.
func TestScriptFlush(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		for _, each := range []*process{p, q} {
			each.each(func(sending) redistest.Fault {
				w.rdb.ScriptFlush(context.Background())
				return redistest.Pass
			})
		}
		outer := w.lock(t.Context(), p.mutex)
		ctx := outer.Context(t.Context())
		inner := w.lock(ctx, p.mutex)
		w.wantHolder(outer.Owner(), 2)
		waiter := w.goLock(t.Context(), q.mutex)
		w.at(65 * time.Second)
		wantEnd(t, ctx, nil)
		w.release(inner)
		if err := outer.Extend(t.Context(), time.Minute); err != nil {
			t.Error(err)
		}
		owner, err := outer.Detach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		attached, err := q.mutex.Attach(t.Context(), owner)
		if err != nil {
			t.Fatal(err)
		}
		if got := ask(t, p.mutex, attached.Owner()); !got.held || got.count != 1 {
			t.Errorf("%+v", got)
		}
		w.release(attached)
		next, err := waiter.result()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.mutex.ForceRelease(t.Context()); err != nil {
			t.Error(err)
		}
		w.wantFree()
		wantErr(t, next.Release(t.Context()), holdfast.ErrLost)
	})
}
