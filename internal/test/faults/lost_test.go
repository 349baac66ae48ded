// Every kind of operation loses its reply, or its request, each time that it is called, and all counts
// and verdicts stay right.

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
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// unlucky is a Client that loses one reply about each armed name, or one request. It loses most by a
// closed connection, and one reply in a hundred by silence.
type unlucky struct {
	*holdfast.Client
	onlooker *holdfast.Client // a Client that loses nothing
	direct   *redis.Client

	proxy   *redistest.FaultProxy
	scripts map[string]string // their names, by digest and by source

	mu    sync.Mutex
	armed map[string]*aim // by name
	looks map[string]int  // how often parties of a barrier have asked how it stands, by name
	lost  int

	requests bool // requests are lost, not replies
}

// aim is which of the coming scripts about a name meets the fault.
type aim struct {
	script string // "": any
	nth    int    // 1 is the next one
}

// newUnlucky returns an unlucky Client of a server of its own.
func newUnlucky(t testing.TB, requests bool) *unlucky {
	t.Helper()
	s := redistest.Server(t)
	u := &unlucky{direct: s.Admin(), armed: map[string]*aim{}, looks: map[string]int{}, scripts: world.ScriptNames(t), requests: requests}
	clienttest.LeaveNothing(t, u.direct, "holdfast_calls:", "holdfast_permits:", "holdfast_latch:",
		"holdfast_once:", "holdfast_once_token:", "holdfast_tick:", "holdfast_barrier:", "holdfast_barrier_places:")
	u.proxy = redistest.Proxy(t, s.Addr())
	u.proxy.OnCommand(u.meet)
	u.Client = u.another(t)
	u.onlooker = clienttest.OpenClient(t, s.Client(t))
	return u
}

// another returns a Client with connections of its own, which meets the same faults.
func (u *unlucky) another(t testing.TB) *holdfast.Client {
	t.Helper()
	return clienttest.OpenClient(t, u.proxy.Client(t, func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond }))
}

// arm has a script about the name meet the fault.
func (u *unlucky) arm(name string, a aim) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.armed[name] = &a
}

// isArmed reports whether the fault about that name is still to come.
func (u *unlucky) isArmed(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.armed[name] != nil
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
		if u.scripts[c.Args[0]] == world.BarrierLookRun {
			u.looks[name]++
		}
		a := u.armed[name]
		if a == nil || a.script != "" && a.script != u.scripts[c.Args[0]] {
			continue
		}
		if a.nth--; a.nth > 0 {
			return redistest.Pass
		}
		delete(u.armed, name)
		switch u.lost++; {
		case u.requests:
			return redistest.DropBefore
		case u.lost%100 == 0:
			return redistest.Silence
		}
		return redistest.CloseAfterExec
	}
	return redistest.Pass
}

// tagged returns the name that a key belongs to: the text in its braces, up to the key of a Once, or the
// whole key if it has none.
func tagged(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	if tag, _, found := strings.Cut(rest, "}"); found {
		name, _, _ := strings.Cut(tag, ":")
		return name
	}
	return key
}

// operation is a call that loses its reply, and a check of what must be true afterwards.
type operation struct {
	what string
	call func() error
	want func() error

	// Which of its scripts loses it.
	nth    int    // 0 is 1
	script string // "": any counts
}

// live lets one operation after the other lose its reply.
func (u *unlucky) live(name string, operations []operation) error {
	for _, o := range operations {
		u.arm(name, aim{o.script, max(o.nth, 1)})
		err := o.call()
		if err == nil {
			err = o.want()
		}
		if err == nil && u.isArmed(name) {
			err = errors.New("nothing was sent")
		}
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
		{what: "Lock", call: func() (err error) { outer, err = m.Lock(ctx); return err }, want: counts(1)},
		{what: "Lock under it", call: func() (err error) { inner, err = m.Lock(outer.Context(ctx)); return err }, want: counts(2)},
		{what: "Extend", call: func() error { return outer.Extend(ctx, time.Minute) }, want: counts(2)},
		{what: "Release of the inner", call: func() error { return inner.Release(ctx) }, want: counts(1)},
		{what: "Release", call: func() error { return outer.Release(ctx) }, want: func() error {
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
		{what: "Lock", call: func() (err error) { w, err = m.Lock(ctx); return err }, want: counts(1, 0)},
		{what: "RLock under it", call: func() (err error) { r, err = m.RLock(w.Context(ctx)); return err }, want: counts(1, 1)},
		{what: "Release of the writer", call: func() error { return w.Release(ctx) }, want: counts(0, 1)},
		{what: "Release of the reader", call: func() error { return r.Release(ctx) }, want: counts(0, 0)},
	}
}

func (u *unlucky) semaphoreLife(ctx context.Context, name string) []operation {
	s, free := u.Semaphore(name), u.onlooker.Semaphore(name).Available
	return []operation{
		{what: "TrySetPermits", call: func() error { return said(s.TrySetPermits(ctx, 3)) }, want: available(ctx, free, 3)},
		{what: "Acquire", call: func() error { return s.Acquire(ctx, 2) }, want: available(ctx, free, 1)},
		{what: "Release", call: func() error { return s.Release(ctx, 1) }, want: available(ctx, free, 2)},
		{what: "AddPermits", call: func() error { return s.AddPermits(ctx, 2) }, want: available(ctx, free, 4)},
	}
}

func (u *unlucky) permitLife(ctx context.Context, name string) []operation {
	p, free := u.PermitSemaphore(name), u.onlooker.PermitSemaphore(name).Available
	var l *holdfast.Lease
	return []operation{
		{what: "TrySetPermits", call: func() error { return said(p.TrySetPermits(ctx, 3)) }, want: available(ctx, free, 3)},
		{what: "Acquire", call: func() (err error) { l, err = p.Acquire(ctx, 2); return err }, want: available(ctx, free, 1)},
		{what: "Extend", call: func() error { return l.Extend(ctx, time.Minute) }, want: available(ctx, free, 1)},
		{what: "Release", call: func() error { return l.Release(ctx) }, want: available(ctx, free, 3)},
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
		{what: "TrySetCount", call: func() error { left = 2; return said(l.TrySetCount(ctx, 2)) }, want: leaves(2)},
		{what: "CountDown", call: down, want: leaves(1)},
		{what: "CountDown to zero", call: down, want: leaves(0)},
	}
}

// what names what is lost.
func (u *unlucky) what() string {
	if u.requests {
		return "requests"
	}
	return "replies, one in a hundred by silence"
}

func TestEveryOperationLosesItsReply(t *testing.T) { loseEach(t, false) }

func TestEveryOperationLosesItsRequest(t *testing.T) { loseEach(t, true) }

// loseEach lets the operations of every kind lose their replies, or their requests.
func loseEach(t *testing.T, requests bool) {
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
		"Leader":              (*unlucky).leaderLife,
		"Once, Tick":          (*unlucky).onceLife,
		"Barrier":             (*unlucky).barrierLife,
	} {
		t.Run(kind, func(t *testing.T) {
			u := newUnlucky(t, requests)
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
			clienttest.Figure(t, "%s: %d lost %s, %d of each operation: all counts and verdicts right", kind, u.lost, u.what(), lives)
		})
	}
}
