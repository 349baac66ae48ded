// These tests show what a server refuses that is short of memory, or a user who is short of rights.

package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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

func TestDenied(t *testing.T) {
	s := redistest.Server(t)
	s.Admin().Do(t.Context(), "ACL", "SETUSER", "app", "on", ">secret", "+@all", "&*", "~"+name, "~*_token:*", "~holdfast_rw_*")
	c := client(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "app", "secret" }))
	for what, f := range map[string]func(context.Context) (*lease.Lease, error){
		"a key without rights":          c.RWMutex("elsewhere").Lock,
		"no rights to the timeout keys": c.RWMutex(name).RLock,
	} {
		if _, err := f(t.Context()); !isAny(err, holdfast.ErrDenied) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := s.Admin().Keys(t.Context(), "*").Val(); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}
