// Redis refuses for a while, and nothing is left taken; or it refuses for good, and callers are notified at once.

package faults

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// refusals are what Redis says. Time ends the first ones, so that calls wait; an operator the others, and calls
// return them.
var refusals = map[string]bool{
	"READONLY You can't write against a read only replica.":                                            true,
	"CLUSTERDOWN The cluster is down":                                                                  true,
	"ERR Script attempted to execute a write command while the cluster is down and readonly":           true,
	"MISCONF Redis is configured to save RDB snapshots, but it's unable to persist to disk":            false,
	"OOM command not allowed when used memory > 'maxmemory'.":                                          false,
	"NOPERM User app has no permissions to run the 'evalsha' command":                                  false,
	"WRONGPASS invalid username-password pair or user is disabled.":                                    false,
	"ERR The user executing the script can't access at least one of the keys mentioned in the command": false,
}

// refused is how long Redis refuses: longer than a release tries before it leaves the rest to the background.
const refused = 6 * time.Second

// refusing is a Redis that refuses what one of two processes asks.
type refusing struct {
	t     *testing.T
	ctx   context.Context
	p, q  *holdfast.Client
	log   *redistest.Log
	proxy *redistest.FaultProxy
	says  string
	waits bool // until Redis refuses no more

	mu    sync.Mutex
	from  int       // how much the log had at refuseFrom
	nth   int       // which script to come is the first to be refused; 0: none is
	until time.Time // Redis refuses; zero: it has not begun
}

// refuseFrom has Redis refuse the nth script to come and all after it, for as long as it does.
func (r *refusing) refuseFrom(nth int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from, r.nth, r.until = len(r.log.String()), nth, time.Time{}
}

// met says whether Redis has refused anything since refuseFrom.
func (r *refusing) met() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.until.IsZero()
}

// meet is the proxy's rule. A wrong password is refused to whoever connects, and no connection is left.
func (r *refusing) meet(c redistest.Command) redistest.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	password := strings.HasPrefix(r.says, "WRONGPASS")
	if isScript(c) && r.until.IsZero() && r.nth > 0 {
		if r.nth--; r.nth == 0 {
			r.until = time.Now().Add(refused)
			if password {
				go r.proxy.Cut()
				return redistest.DropBefore
			}
		}
	}
	switch refuses := time.Now().Before(r.until); {
	case refuses && (isScript(c) || password):
		return redistest.ReplyError(r.says)
	case c.Name == "AUTH":
		return redistest.Reply("+OK")
	}
	return redistest.Pass
}

// result fails the test unless a call that met the refusal succeeded or said why it did not.
func (r *refusing) result(what string, err error) {
	r.t.Helper()
	code, _, _ := strings.Cut(r.says, " ")
	if code == "ERR" {
		code = r.says
	}
	switch {
	case err == nil:
	case r.waits && errors.Is(err, holdfast.ErrUnavailable): // a release, or what counts: it goes on alone
	case !r.waits && strings.Contains(fmt.Sprint(err, r.log.String()[r.from:]), code):
	default:
		r.t.Errorf("%s: %s: %v", r.says, what, err)
	}
}

// onRefusing plays with each refusal, each in a bubble of its own.
func onRefusing(t *testing.T, play func(r *refusing)) {
	for says, waits := range refusals {
		t.Run(says, func(t *testing.T) {
			redistest.Bubble(t, func(t *testing.T) {
				server, log := redistest.Mini(t), new(redistest.Log)
				r := &refusing{t: t, ctx: t.Context(), log: log, proxy: server.Proxy(), says: says, waits: waits}
				r.proxy.OnCommand(r.meet)
				r.p = clienttest.OpenClient(t, r.proxy.Client(t, func(o *redis.Options) { o.Password = "secret" }),
					holdfast.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
				r.q = clienttest.OpenClient(t, server.Client())
				play(r)
			})
		})
	}
}

// Each kind is used while Redis refuses: from the first script on, from the second, and so on. A call goes on when
// Redis does, or says why it cannot. Soon after, another has the use of all, long before any lease is over.
func TestWhatIsRefusedForAWhileLeavesNothingTaken(t *testing.T) {
	for kind, use := range uses() {
		t.Run(kind, func(t *testing.T) {
			onRefusing(t, func(r *refusing) {
				for nth := 1; ; nth++ {
					name := fmt.Sprint(kind, nth)
					r.refuseFrom(nth)
					ctx, cancel := context.WithTimeout(r.ctx, 15*time.Second)
					err := use(ctx, r.p, name)
					cancel()
					if !r.met() {
						break
					}
					r.result(fmt.Sprint("script ", nth), err)
					time.Sleep(max(0, time.Until(r.until)) + 3*time.Second)
					ctx, cancel = context.WithTimeout(r.ctx, time.Second)
					if err := use(ctx, r.q, name); err != nil {
						r.t.Errorf("%s, from script %d on: another: %v", r.says, nth, err)
					}
					cancel()
				}
			})
		})
	}
}

// A lease is kept though its renewals are refused for a while; who waits goes on when Redis does, or says why it
// cannot.
func TestALeaseOutlastsWhatIsRefusedForAWhile(t *testing.T) {
	for _, kind := range lockertest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			onRefusing(t, func(r *refusing) {
				mine, theirs := contenders(r.t, kind, "k", r.p, r.q)
				redistest.Must(r.t, turn(r.ctx, mine))
				options := holdfast.Renewed(12 * time.Second)
				l, err := kind.Locker(r.p, "k", options).Lock(r.ctx)
				redistest.Must(r.t, err)
				time.Sleep(3 * time.Second)
				r.refuseFrom(1) // the first renewal
				time.Sleep(20 * time.Second)
				if err := l.Release(r.ctx); err != nil || !r.met() {
					r.t.Errorf("%s: the release: %v; refused: %t", r.says, err, r.met())
				}

				held, err := theirs.Lock(r.ctx)
				redistest.Must(r.t, err)
				waits := make(chan error, 1)
				go func() { waits <- turn(r.ctx, mine) }()
				time.Sleep(time.Second)
				r.refuseFrom(1)
				time.Sleep(refused + 2*time.Second)
				redistest.Check(r.t, held.Release(r.ctx))
				r.result("Lock that waits", ends(r.t, "Lock that waits", waits, 100*time.Millisecond))
				next, err := theirs.TryLock(r.ctx)
				if err != nil {
					r.t.Fatalf("%s: another: %v", r.says, err)
				}
				redistest.Check(r.t, next.Release(r.ctx))
			})
		})
	}
}

// What is held goes on without memory, and is nested, detached and attached, even after the server has forgotten the
// scripts, so that the Client sends them whole.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	ctx := clienttest.Generous(t)
	c := clienttest.OpenClient(t, s.Client(t))
	leases := clienttest.GrabMany(t, c, "full", 10, holdfast.Renewed(keptLease))
	do(t, s, "CONFIG", "SET", "maxmemory", "1")
	for i := range redistest.Count(t, 1000) {
		name := fmt.Sprint("refused", i%10)
		if _, err := c.Mutex(name).Lock(ctx); !errors.Is(err, holdfast.ErrOutOfMemory) {
			t.Fatalf("Lock = %v, want ErrOutOfMemory", err)
		}
		if n := s.Admin().Exists(ctx, name, "redisson_lock_token:{"+name+"}").Val(); n != 0 {
			t.Fatalf("a Lock that was refused left %d keys", n)
		}
		s.FlushScripts()
		if err := leases["full0"].Extend(ctx, keptLease+time.Duration(i)*time.Second); err != nil {
			t.Fatalf("Extend: %v", err)
		}
	}
	m := c.Mutex("full0")
	inner, err := m.Lock(leases["full0"].Context(ctx))
	redistest.Must(t, err)
	clienttest.GiveBack(t, inner)
	for range 3 { // whether or not the calls have to change the time to live
		owner, err := leases["full0"].Detach(ctx)
		redistest.Must(t, err)
		leases["full0"], err = m.Attach(ctx, owner)
		redistest.Must(t, err)
	}
	clienttest.GiveBack(t, leases["full0"])
	delete(leases, "full0")
	outlasted(t, s, leases)
	clienttest.GiveBackAll(t, leases)
	do(t, s, "CONFIG", "SET", "maxmemory", "0")
}

// A user that may neither publish nor subscribe locks, waits and releases all the same.
func TestDeniedChannels(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	for name, rules := range map[string][]string{
		"nochannels": {"~*", "resetchannels", "+@all"},
		"nopublish":  {"~*", "&*", "+@all", "-publish", "-subscribe"},
	} {
		t.Run(name, func(t *testing.T) {
			as := clienttest.User(t, s, name, rules...)
			a, b := clienttest.OpenClient(t, s.Client(t, as)), clienttest.OpenClient(t, s.Client(t, as))
			l := clienttest.Grab(t, a.Mutex("quiet"))
			next, err := beside(func() (*holdfast.Lease, error) { return b.Mutex("quiet").Lock(clienttest.Generous(t)) },
				func() error { return l.Release(clienttest.Generous(t)) })
			redistest.Must(t, err)
			clienttest.GiveBack(t, next)
		})
	}
}
