// Every kind of operation loses its reply each time that it is called, and all counts and verdicts
// stay right.

package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// unlucky is a Client that loses the first reply about each armed name. It loses most replies by a
// closed connection, and one in a hundred by silence.
type unlucky struct {
	*holdfast.Client
	onlooker *holdfast.Client // a Client that loses nothing
	direct   *redis.Client

	mu    sync.Mutex
	armed map[string]bool
	lost  int
}

// newUnlucky returns an unlucky Client of a server of its own.
func newUnlucky(t *testing.T) *unlucky {
	t.Helper()
	s := redistest.Server(t)
	u := &unlucky{direct: s.Admin(), armed: map[string]bool{}}
	clienttest.LeaveNothing(t, u.direct, "holdfast_calls:", "holdfast_permits:", "holdfast_latch:")
	proxy := redistest.Proxy(t, s.Addr())
	proxy.OnCommand(u.meet)
	u.Client = clienttest.OpenClient(t, proxy.Client(t, func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond }))
	u.onlooker = clienttest.OpenClient(t, s.Client(t))
	return u
}

// meet is the proxy's rule.
func (u *unlucky) meet(c redistest.Command) redistest.Fault {
	if !isScript(c) {
		return redistest.Pass
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, arg := range c.Args {
		name := tagged(arg)
		if !u.armed[name] {
			continue
		}
		delete(u.armed, name)
		if u.lost++; u.lost%100 == 0 {
			return redistest.Silence
		}
		return redistest.CloseAfterExec
	}
	return redistest.Pass
}

// tagged returns the name that a key belongs to: the text in its braces, or the whole key if it has
// none.
func tagged(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	if tag, _, found := strings.Cut(rest, "}"); found {
		return tag
	}
	return key
}

// operation is a call that loses its reply, and a check of what must be true afterwards.
type operation struct {
	what string
	call func() error
	want func() error
}

// live lets one operation after the other lose its reply.
func (u *unlucky) live(name string, operations []operation) error {
	for _, o := range operations {
		u.mu.Lock()
		u.armed[name] = true
		u.mu.Unlock()
		err := o.call()
		if err == nil {
			err = o.want()
		}
		u.mu.Lock()
		if err == nil && u.armed[name] {
			err = errors.New("nothing was sent")
		}
		u.mu.Unlock()
		if err != nil {
			return fmt.Errorf("%s of %s: %w", o.what, name, err)
		}
	}
	return nil
}

// counter asks how many leases an owner has on a lock.
type counter func(ctx context.Context, owner holdfast.Owner) (int, error)

// lockLife returns the operations in the life of a lock.
func lockLife(ctx context.Context, m holdfast.Locker, count counter) []operation {
	var outer, inner *holdfast.Lease
	counts := func(want int) func() error {
		return func() error {
			got, err := count(ctx, outer.Owner())
			if err == nil && got != want {
				err = fmt.Errorf("the count is %d, want %d", got, want)
			}
			return err
		}
	}
	return []operation{
		{"Lock", func() (err error) { outer, err = m.Lock(ctx); return err }, counts(1)},
		{"Lock under it", func() (err error) { inner, err = m.Lock(outer.Context(ctx)); return err }, counts(2)},
		{"Extend", func() error { return outer.Extend(ctx, time.Minute) }, counts(2)},
		{"Release of the inner", func() error { return inner.Release(ctx) }, counts(1)},
		{"Release", func() error { return outer.Release(ctx) }, func() error {
			if err := outer.Release(ctx); !errors.Is(err, holdfast.ErrReleased) {
				return fmt.Errorf("a second Release = %v, want ErrReleased", err)
			}
			return counts(0)()
		}},
	}
}

// available returns a check that so many permits are free.
func available(ctx context.Context, count func(context.Context) (int, error), want int) func() error {
	return func() error {
		got, err := count(ctx)
		if err == nil && got != want {
			err = fmt.Errorf("%d permits are free, want %d", got, want)
		}
		return err
	}
}

// said returns an error unless a call has answered true.
func said(set bool, err error) error {
	if err == nil && !set {
		err = errors.New("it says false")
	}
	return err
}

// downgradeLife locks for writing, and goes on as a reader afterwards.
func (u *unlucky) downgradeLife(ctx context.Context, name string) []operation {
	m, now := u.RWMutex(name), u.onlooker.RWMutex(name)
	var w, r *holdfast.Lease
	counts := func(writes, reads int) func() error {
		return func() error {
			wrote, err := now.HoldCount(ctx, w.Owner())
			read, readErr := 0, error(nil)
			if r != nil {
				read, readErr = now.RHoldCount(ctx, r.Owner())
			}
			if err := errors.Join(err, readErr); err != nil {
				return err
			}
			if wrote != writes || read != reads {
				return fmt.Errorf("the counts are %d and %d, want %d and %d", wrote, read, writes, reads)
			}
			return nil
		}
	}
	return []operation{
		{"Lock", func() (err error) { w, err = m.Lock(ctx); return err }, counts(1, 0)},
		{"RLock under it", func() (err error) { r, err = m.RLock(w.Context(ctx)); return err }, counts(1, 1)},
		{"Release of the writer", func() error { return w.Release(ctx) }, counts(0, 1)},
		{"Release of the reader", func() error { return r.Release(ctx) }, counts(0, 0)},
	}
}

func (u *unlucky) semaphoreLife(ctx context.Context, name string) []operation {
	s, free := u.Semaphore(name), u.onlooker.Semaphore(name).Available
	return []operation{
		{"TrySetPermits", func() error { return said(s.TrySetPermits(ctx, 3)) }, available(ctx, free, 3)},
		{"Acquire", func() error { return s.Acquire(ctx, 2) }, available(ctx, free, 1)},
		{"Release", func() error { return s.Release(ctx, 1) }, available(ctx, free, 2)},
		{"AddPermits", func() error { return s.AddPermits(ctx, 2) }, available(ctx, free, 4)},
	}
}

func (u *unlucky) permitLife(ctx context.Context, name string) []operation {
	p, free := u.PermitSemaphore(name), u.onlooker.PermitSemaphore(name).Available
	var l *holdfast.Lease
	return []operation{
		{"TrySetPermits", func() error { return said(p.TrySetPermits(ctx, 3)) }, available(ctx, free, 3)},
		{"Acquire", func() (err error) { l, err = p.Acquire(ctx, 2); return err }, available(ctx, free, 1)},
		{"Extend", func() error { return l.Extend(ctx, time.Minute) }, available(ctx, free, 1)},
		{"Release", func() error { return l.Release(ctx) }, available(ctx, free, 3)},
	}
}

func (u *unlucky) latchLife(ctx context.Context, name string) []operation {
	l := u.Latch(name)
	var left int64
	down := func() (err error) { left, err = l.CountDown(ctx); return err }
	leaves := func(want int64) func() error {
		return func() error {
			got, err := u.onlooker.Latch(name).Count(ctx)
			if err == nil && (left != want || got != want) {
				err = fmt.Errorf("%d are left and it says %d, want %d", got, left, want)
			}
			return err
		}
	}
	return []operation{
		{"TrySetCount", func() error { left = 2; return said(l.TrySetCount(ctx, 2)) }, leaves(2)},
		{"CountDown", down, leaves(1)},
		{"CountDown to zero", down, leaves(0)},
	}
}

func TestEveryOperationLosesItsReply(t *testing.T) {
	for kind, life := range map[string]func(u *unlucky, ctx context.Context, name string) []operation{
		"Mutex": func(u *unlucky, ctx context.Context, name string) []operation {
			return lockLife(ctx, u.Mutex(name), u.onlooker.Mutex(name).HoldCount)
		},
		"FairMutex": func(u *unlucky, ctx context.Context, name string) []operation {
			return lockLife(ctx, u.FairMutex(name), u.onlooker.FairMutex(name).HoldCount)
		},
		"RWMutex, write": func(u *unlucky, ctx context.Context, name string) []operation {
			return lockLife(ctx, u.RWMutex(name), u.onlooker.RWMutex(name).HoldCount)
		},
		"RWMutex, read": func(u *unlucky, ctx context.Context, name string) []operation {
			return lockLife(ctx, u.RWMutex(name).RLocker(), u.onlooker.RWMutex(name).RHoldCount)
		},
		"RWMutex, downgraded": (*unlucky).downgradeLife,
		"Semaphore":           (*unlucky).semaphoreLife,
		"PermitSemaphore":     (*unlucky).permitLife,
		"Latch":               (*unlucky).latchLife,
	} {
		t.Run(kind, func(t *testing.T) {
			u := newUnlucky(t)
			lives := redistest.CountOfWork(t, 10_000)
			// There are no more goroutines than connections. Otherwise a lost reply would take
			// others with it, and some call would lose all of its replies.
			clienttest.Each(lives, 4, func(i int) {
				name := fmt.Sprint("unlucky", i)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := u.live(name, life(u, ctx, name)); err != nil {
					t.Error(err)
				}
				if err := u.direct.Del(ctx, name).Err(); err != nil { // permits that are set stay
					t.Error(err)
				}
			})
			clienttest.Figure(t, "%s: %d lost replies, %d of each operation, one in a hundred by silence: all counts and verdicts right",
				kind, u.lost, lives)
		})
	}
}
