// This test shows what a server refuses that is short of memory.

package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

func TestOutOfMemory(t *testing.T) {
	s := redistest.Server(t)
	c := client(t, s.Client(t))
	m, ctx := c.RWMutex(name), t.Context()
	w := must(t)(m.Lock(ctx))
	r := must(t)(m.RLock(w.Context(ctx)))
	s.Admin().ConfigSet(ctx, "maxmemory", "1")
	for _, f := range []func(context.Context) (*lease.Lease, error){c.RWMutex("x").Lock, c.RWMutex("x").RLock} {
		if _, err := f(ctx); !isAny(err, holdfast.ErrOutOfMemory) {
			t.Errorf("in want of memory: %v", err)
		}
	}
	// What is there already goes on: nested leases, renewals, releases, the downgrade.
	nested, rnested := must(t)(m.Lock(w.Context(ctx))), must(t)(m.RLock(r.Context(ctx)))
	for _, l := range []*lease.Lease{w, r} {
		if err := l.Extend(ctx, time.Minute); err != nil {
			t.Error(err)
		}
	}
	for _, l := range []*lease.Lease{nested, w, rnested, r} {
		leave(t, l)
	}
	if s.Admin().Exists(ctx, name).Val() != 0 {
		t.Error("the lock is still there")
	}
}
