// What errors say: of a lock that is held, of a Redis that cannot be reached, of another type of value, and
// of bad input, which changes nothing in Redis.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/rlock"
)

// wantBusy fails the test unless err says that the lock is held.
func wantBusy(t *testing.T, err error) *holdfast.BusyError {
	t.Helper()
	var busy *holdfast.BusyError
	if !errors.Is(err, holdfast.ErrBusy) || !errors.As(err, &busy) {
		t.Fatalf("%v", err)
	}
	if !busy.Holder.IsZero() && !strings.Contains(err.Error(), busy.Holder.Short()) {
		t.Errorf("the holder %s is not in the text: %v", busy.Holder.Short(), err)
	}
	return busy
}

func TestBusyErrorsSayWhoHolds(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		other := clienttest.OpenClient(t, mini.Client())
		granted := time.Now()
		l := clienttest.Grab(t, c.Mutex("x"))
		time.Sleep(4 * time.Second)
		short := redistest.Within(t, 2*time.Second)
		for what, try := range map[string]func() error{
			"a try of a Mutex":      func() error { _, err := other.Mutex("x").TryLock(t.Context()); return err },
			"a try of a FairMutex":  func() error { _, err := other.FairMutex("x").TryLock(t.Context()); return err },
			"a wait for a Mutex":    func() error { _, err := other.Mutex("x").Lock(short); return err },
			"Do, which waits":       func() error { return holdfast.Do(t.Context(), other.Mutex("x"), nil, holdfast.WaitAtMost(time.Second)) },
			"a MultiLock, of which": func() error { _, err := holdfast.NewMultiLock(other.Mutex("x")).TryLock(t.Context()); return err },
		} {
			busy := wantBusy(t, try())
			if busy.Holder != l.Owner() || !busy.Since.Equal(granted) || busy.Left <= 20*time.Second || busy.Left > 30*time.Second {
				t.Errorf("%s: held by %s since %v, %v left", what, busy.Holder.Short(), busy.Since, busy.Left)
			}
		}
		synctest.Wait() // those who waited give up their places in the background: the release must not hand the lock to one
		clienttest.GiveBack(t, l)

		java := javaHolder()
		rdb.HSet(t.Context(), "x", java, 1)
		for _, m := range []interface {
			TryLock(context.Context) (*holdfast.Lease, error)
		}{other.Mutex("x"), other.FairMutex("x")} {
			_, err := m.TryLock(t.Context())
			if busy := wantBusy(t, err); busy.Holder.String() != java || !busy.Since.IsZero() || busy.Left != holdfast.NoExpiry {
				t.Errorf("held by Java: %+v", busy)
			}
		}
		rdb.Del(t.Context(), "x")
	})
}

// A waiter that looks, for a long time, still says who holds the lock; and does not name a holder that
// has been followed by another meanwhile.
func TestBusyErrorsOfAWaiterThatLooks(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		other := clienttest.OpenClient(t, mini.Client())
		l := clienttest.Grab(t, c.Mutex("x"))
		wait := func(meanwhile func()) *holdfast.BusyError {
			t.Helper()
			time.AfterFunc(20*time.Second, meanwhile)
			_, err := other.Mutex("x").Lock(redistest.Within(t, 40*time.Second))
			return wantBusy(t, err)
		}
		if busy := wait(func() {}); busy.Holder != l.Owner() || busy.Since.IsZero() || busy.Left < 15*time.Second {
			t.Errorf("held by %s since %v, %v left", busy.Holder.Short(), busy.Since, busy.Left)
		}
		synctest.Wait() // the waiter gives up its place in the background: the release must not hand the lock to it
		clienttest.GiveBack(t, l)

		rdb.HSet(t.Context(), "x", javaHolder(), 1)
		busy := wait(func() { // by another thread, and without a message
			_, _ = rdb.TxPipelined(context.Background(), func(tx redis.Pipeliner) error { // so that no waiter finds it free
				tx.Del(context.Background(), "x")
				tx.HSet(context.Background(), "x", "6e0e2d3c-0000-4000-8000-000000000001:7", 1)
				return nil
			})
		})
		if !busy.Holder.IsZero() || !busy.Since.IsZero() || busy.Left != holdfast.NoExpiry {
			t.Errorf("after another came: held by %s since %v, %v left", busy.Holder.Short(), busy.Since, busy.Left)
		}
		rdb.Del(t.Context(), "x")
	})
}

// Where Redis says no holder, the error says how long it may last, if that is known.
func TestBusyErrorsOfOtherKinds(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		read := clienttest.Grab(t, c.RWMutex("x").RLocker())
		defer clienttest.GiveBack(t, read)
		_, err := c.RWMutex("x").TryLock(t.Context())
		if busy := wantBusy(t, err); !busy.Holder.IsZero() || !busy.Since.IsZero() || busy.Left != 30*time.Second {
			t.Errorf("%+v", busy)
		}
		_, err = c.Mutex("x").TryLock(t.Context())
		if busy := wantBusy(t, err); !busy.Holder.IsZero() || busy.Left != 30*time.Second {
			t.Errorf("a Mutex of the name of an RWMutex: %+v", busy)
		}
		permits := c.PermitSemaphore("p")
		must(t, permits.SetPermits(t.Context(), 1))
		taken := clienttest.Grab(t, permits.Locker(1))
		defer clienttest.GiveBack(t, taken)
		_, err = permits.TryAcquire(t.Context(), 1)
		if busy := wantBusy(t, err); !busy.Holder.IsZero() {
			t.Errorf("%+v", busy)
		}
	})
}

// unreachable runs test in virtual time, with a Client behind a proxy.
func unreachable(t *testing.T, test func(t *testing.T, c *holdfast.Client, server *redistest.MiniServer, proxy *redistest.FaultProxy)) {
	redistest.Bubble(t, func(t *testing.T) {
		server := redistest.Mini(t)
		proxy := server.Proxy()
		c := holdfast.New(proxy.Client(t))
		defer c.Close()
		test(t, c, server, proxy)
	})
}

func TestATryEndsByItselfWhereRedisCannotBeReached(t *testing.T) {
	for name, fault := range map[string]func(*redistest.FaultProxy){
		"nothing listens": func(p *redistest.FaultProxy) { p.Refuse(true) },
		"silence": func(p *redistest.FaultProxy) {
			p.OnCommand(func(redistest.Command) redistest.Fault { return redistest.Silence })
		},
	} {
		t.Run(name, func(t *testing.T) {
			unreachable(t, func(t *testing.T, c *holdfast.Client, _ *redistest.MiniServer, proxy *redistest.FaultProxy) {
				fault(proxy)
				ofLocks, ofCounts := takes()
				maps.Copy(ofLocks, ofCounts)
				for kind, try := range ofLocks {
					if !strings.Contains(kind, ".Try") {
						continue
					}
					begun := time.Now()
					err := try(context.Background(), c, "m")
					if !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrBusy) {
						t.Errorf("%s: %v, want what matches ErrUnavailable", kind, err)
					}
					if took := time.Since(begun); took != 3*time.Second {
						t.Errorf("%s ended after %v, want 3s", kind, took)
					}
				}
			})
		})
	}
}

func TestTheErrorOfAWaitSaysWhetherRedisCouldBeReached(t *testing.T) {
	sentinels := []error{holdfast.ErrUnavailable, holdfast.ErrBusy, context.DeadlineExceeded, context.Canceled}
	for name, tc := range map[string]struct {
		held, down, cancelled bool
		matches               []error
	}{
		"held by another":                    {held: true, matches: []error{holdfast.ErrBusy, context.DeadlineExceeded}},
		"no Redis":                           {down: true, matches: []error{holdfast.ErrUnavailable, context.DeadlineExceeded}},
		"held by another, and then no Redis": {held: true, down: true, matches: []error{holdfast.ErrUnavailable, holdfast.ErrBusy, context.DeadlineExceeded}},
		"no Redis, and cancelled":            {down: true, cancelled: true, matches: []error{context.Canceled}},
	} {
		t.Run(name, func(t *testing.T) {
			unreachable(t, func(t *testing.T, c *holdfast.Client, server *redistest.MiniServer, proxy *redistest.FaultProxy) {
				if tc.held {
					other := clienttest.OpenClient(t, server.Client())
					l := clienttest.Grab(t, other.Mutex("m"))
					defer l.Release(context.Background())
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if tc.down && !tc.held {
					proxy.Refuse(true)
				}
				time.AfterFunc(5*time.Second, func() {
					if tc.down {
						proxy.Refuse(true)
						proxy.Cut()
					}
					if tc.cancelled {
						cancel()
					}
				})
				err := errOf(c.Mutex("m").Lock(ctx))
				for _, sentinel := range sentinels {
					if want := slices.Contains(tc.matches, sentinel); errors.Is(err, sentinel) != want {
						t.Errorf("%v matches %v: %v, want %v", err, sentinel, !want, want)
					}
				}
			})
		})
	}
}

func TestACallSaysThatTheServerHasTooManyClients(t *testing.T) {
	const words = "ERR max number of clients reached"
	unreachable(t, func(t *testing.T, c *holdfast.Client, _ *redistest.MiniServer, proxy *redistest.FaultProxy) {
		proxy.Receive(redistest.Full)
		for name, err := range map[string]error{
			"Lock":    errOf(c.Mutex("m").Lock(redistest.Within(t, 10*time.Second))),
			"TryLock": errOf(c.Mutex("m").TryLock(t.Context())),
		} {
			if !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrBusy) || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v, want what matches ErrUnavailable and has the server's words", name, err)
			}
		}
		if _, err := c.Check(t.Context()); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("Check: %v, want the server's words", err)
		}
	})
}

// values are values that are not a lock, by their sort. Each is set at the name, and an error says what it is.
var values = map[string]struct {
	set  func(w *world.World)
	says string
}{
	"string": {
		func(w *world.World) { w.RDB.Set(w.T.Context(), world.Name, "q1Zx7vLbT0aWc9sEo5mRUg==", 0) },
		"a string stands there, as redsync, redislock and other locks by SET NX leave it; docs/from says how to come from them",
	},
	"number": {
		func(w *world.World) { w.RDB.Set(w.T.Context(), world.Name, 3, 0) },
		"a number stands there, as a Semaphore or a Latch keeps it, or a lock by SET NX; give each kind a name of its own",
	},
	"hash": {
		func(w *world.World) { w.RDB.HSet(w.T.Context(), world.Name, javaHolder(), 1) },
		"a hash stands there, as a Mutex or an RWMutex keeps it; give each kind a name of its own",
	},
	"list": {
		func(w *world.World) { w.RDB.RPush(w.T.Context(), world.Name, "precious") },
		"a list stands there; is it another program's?",
	},
	"zset": {
		func(w *world.World) { w.RDB.Do(w.T.Context(), "ZADD", world.Name, 1, "precious") },
		"a zset stands there; is it another program's?",
	},
}

// taking is a call that takes something at a name.
type taking func(ctx context.Context, c *holdfast.Client, name string) error

// takes returns the calls that take something at the name: of kinds that keep a hash there, and of kinds
// that keep a number.
func takes() (ofLocks, ofCounts map[string]taking) {
	ofLocks = map[string]taking{
		"Leader.Run": func(ctx context.Context, c *holdfast.Client, name string) error {
			return c.Leader(name).Run(ctx, func(context.Context, *leader.Term) error { return nil })
		},
		"MultiLock.Lock": func(ctx context.Context, c *holdfast.Client, name string) error {
			return errOf(holdfast.NewMultiLock(c.Mutex(name), c.Mutex("other")).Lock(ctx))
		},
	}
	for kind, locker := range lockers {
		ofLocks[kind+".Lock"] = func(ctx context.Context, c *holdfast.Client, name string) error {
			return errOf(locker(c, name).Lock(ctx))
		}
		ofLocks[kind+".TryLock"] = func(ctx context.Context, c *holdfast.Client, name string) error {
			return errOf(locker(c, name).TryLock(ctx))
		}
	}
	return ofLocks, map[string]taking{
		"Semaphore.Acquire": func(ctx context.Context, c *holdfast.Client, name string) error {
			return c.Semaphore(name).Acquire(ctx, 1)
		},
		"Semaphore.TryAcquire": func(ctx context.Context, c *holdfast.Client, name string) error {
			return c.Semaphore(name).TryAcquire(ctx, 1)
		},
		"Semaphore.TrySetPermits": func(ctx context.Context, c *holdfast.Client, name string) error {
			return errOf(c.Semaphore(name).TrySetPermits(ctx, 1))
		},
		"PermitSemaphore.Acquire": func(ctx context.Context, c *holdfast.Client, name string) error {
			return errOf(c.PermitSemaphore(name).Acquire(ctx, 1))
		},
		"PermitSemaphore.TryAcquire": func(ctx context.Context, c *holdfast.Client, name string) error {
			return errOf(c.PermitSemaphore(name).Locker(1).TryLock(ctx))
		},
		"PermitSemaphore.TrySetPermits": func(ctx context.Context, c *holdfast.Client, name string) error {
			return errOf(c.PermitSemaphore(name).TrySetPermits(ctx, 1))
		},
		"Latch.Wait": func(ctx context.Context, c *holdfast.Client, name string) error { return c.Latch(name).Wait(ctx) },
		"Latch.TrySetCount": func(ctx context.Context, c *holdfast.Client, name string) error {
			return errOf(c.Latch(name).TrySetCount(ctx, 1))
		},
	}
}

// The error of each kind names what stands there, and what to do. It costs one request more, and the
// value stays as it is.
func TestForeign_EachKindNamesWhatStandsThere(t *testing.T) {
	ofLocks, ofCounts := takes()
	for value, of := range values {
		takes := maps.Clone(ofLocks)
		switch value {
		case "hash":
			takes = ofCounts
		case "string", "list", "zset":
			maps.Copy(takes, ofCounts)
		}
		for kind, take := range takes {
			play(t, value+"/"+kind, func(t *testing.T, w *world.World) {
				p := w.Process()
				of.set(w)
				before := w.Mini.Snapshot()
				err := take(t.Context(), p.Client, world.Name)
				world.WantErr(t, err, holdfast.ErrWrongType)
				if text := err.Error(); !strings.HasSuffix(text, of.says) || strings.Count(text, world.Name) != 1 {
					t.Errorf("%s, want the name once, and ...%s", text, of.says)
				}
				world.Equal(t, p.Runs(world.TypeRun), 1, "asked for the type %d times")
				world.Equal(t, w.Mini.Snapshot(), before, "after\n%s\nbefore\n%s", before)
				w.Mini.Del(world.Name)
			})
		}
	}
}

// If Redis refuses to name the type, or loses the reply, the error is still one of a wrong type.
func TestForeign_RedisDoesNotSay(t *testing.T) {
	for what, fault := range map[string]redistest.Fault{
		"refused": redistest.ReplyError("NOPERM no TYPE"),
		"silent":  redistest.Silence,
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p := w.Process()
			values["string"].set(w)
			p.Always(world.TypeRun, fault)
			_, err := p.MyLock.TryLock(t.Context())
			world.WantErr(t, err, holdfast.ErrWrongType)
			if errors.Is(err, holdfast.ErrDenied) || strings.Contains(err.Error(), "stands there") {
				t.Errorf("the error tells of the question: %v", err)
			}
			w.Mini.Del(world.Name)
		})
	}
}

// wantEverywhere fails the test unless each method of a mutex that sends a request to Redis returns that error.
func wantEverywhere(t *testing.T, m *rlock.Mutex, want error) {
	t.Helper()
	ctx, owner := t.Context(), lease.Owner(hold.NewOwner("6e0e2d3c-0000-4000-8000-000000000000", 1))
	for what, err := range map[string]error{
		"Lock": errOf(m.Lock(ctx)), "TryLock": errOf(m.TryLock(ctx)), "Attach": errOf(m.Attach(ctx, owner)),
		"Locked": errOf(m.Locked(ctx)), "HeldBy": errOf(m.HeldBy(ctx, owner)), "HoldCount": errOf(m.HoldCount(ctx, owner)),
		"Remaining": errOf(m.Remaining(ctx)), "Holder": errOf(m.Holder(ctx)), "ForceRelease": errOf(m.ForceRelease(ctx)),
	} {
		redistest.Is(t, what, err, want)
	}
}

func TestInput_Leases(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		someone := lease.Owner(hold.NewOwner("6e0e2d3c-0000-4000-8000-000000000000", 1))
		l := w.Lock(t.Context(), p.MyLock)
		before := p.Runs("")
		world.WantErr(t, errOf(p.MyLock.Attach(t.Context(), holdfast.Owner{})), holdfast.ErrBadArgument)
		for _, d := range []time.Duration{0, -time.Second, lease.MinLease - 1} {
			m := p.Mutex(world.Name, holdfast.Fixed(d))
			redistest.Is(t, fmt.Sprint("Attach for ", d), errOf(m.Attach(t.Context(), someone)), holdfast.ErrBadArgument)
			redistest.Is(t, fmt.Sprint("a nested Lock for ", d), errOf(m.Lock(l.Context(t.Context()))), holdfast.ErrBadArgument)
			redistest.Is(t, fmt.Sprint("Extend by ", d), l.Extend(t.Context(), d), holdfast.ErrBadArgument)
		}
		for _, life := range []time.Duration{-1, time.Minute, time.Hour - 1} {
			short := w.Process(holdfast.WithTokenLife(life))
			redistest.Is(t, fmt.Sprint("tokens for ", life), errOf(short.MyLock.Lock(t.Context())), holdfast.ErrBadArgument)
		}
		world.Equal(t, p.Runs("")-before, 0, "%d requests")
		w.WantTTL(30 * time.Second)
		w.Release(l)

		shortest := w.Lock(t.Context(), p.Mutex(world.Name, nil, holdfast.Fixed(lease.MinLease)))
		w.WantTTL(lease.MinLease)
		w.Release(shortest)
	})
}

func TestInput_Names(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		for _, bad := range []string{"", "redisson_lock_token:{a}", "holdfast_x", "redisson_lock_queue:{a}"} {
			wantEverywhere(t, p.Mutex(bad), holdfast.ErrBadArgument)
		}
		world.Equal(t, p.Runs(""), 0, "%d requests")
		for _, good := range []string{" ", "a", "a b\r\n", "\x00\xff", "{", "}", "{}", "a}b", "{a}b", "grüße", fmt.Sprintf("%0600d", 7)} {
			l, err := p.Mutex(good).TryLock(t.Context())
			if err != nil {
				t.Errorf("%q: %v", good, err)
				continue
			}
			if got := w.Holders(good); len(got) != 1 {
				t.Errorf("%q: held by %q", good, got)
			}
			w.Release(l)
			for _, key := range w.Mini.Keys() {
				w.Mini.Del(key) // odd names have tokens of another prefix
			}
		}
	})
}

// For some names Redisson looks for the tokens or permits in another place. Holdfast makes no tokens to share and no
// permits for such a name. A plain lock may have such a name, since its key is the name itself.
func TestNamesThatCannotBeShared(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		for _, name := range []string{"a}b", "a{", "{}x"} {
			wantEverywhere(t, p.Mutex(name, holdfast.JavaTokens()), holdfast.ErrBadArgument)
			world.WantErr(t, p.Semaphore(name).Acquire(t.Context(), 1), holdfast.ErrBadArgument)
			world.WantErr(t, p.PermitSemaphore(name).SetPermits(t.Context(), 1), holdfast.ErrBadArgument)
			for _, m := range []lease.Locker{p.FairMutex(name, holdfast.JavaTokens()), p.RWMutex(name)} {
				l, err := m.TryLock(t.Context())
				world.WantErr(t, err, holdfast.ErrBadArgument)
				if err == nil {
					w.Release(l)
				}
			}
		}
		world.Equal(t, p.Runs(""), 0, "%d requests")
		l := w.Lock(t.Context(), p.Mutex("a}b"))
		info, err := p.Inspect(t.Context(), "a}b")
		if err != nil || len(info.Holders) != 1 || info.Holders[0].Owner != l.Owner() {
			t.Errorf("Inspect() = %+v, %v", info, err)
		}
		w.Release(l)
		for _, key := range w.Mini.Keys() {
			w.Mini.Del(key) // the token has another prefix
		}
	})
}

// A key that is not a lock is left as it is.
func TestWrongType(t *testing.T) {
	for _, value := range []string{"string", "list", "zset"} {
		play(t, value, func(t *testing.T, w *world.World) {
			p := w.Process()
			values[value].set(w)
			before := w.Mini.Snapshot()
			wantEverywhere(t, p.MyLock, holdfast.ErrWrongType)
			world.Equal(t, w.Mini.Snapshot(), before, "after\n%s\nbefore\n%s", before)
			w.Mini.Del(world.Name)
		})
	}
}

func TestClientsThatCannotBeServed(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	for what, rdb := range map[string]redis.UniversalClient{
		"nil":                        nil,
		"a nil *redis.Client":        (*redis.Client)(nil),
		"a nil *redis.ClusterClient": (*redis.ClusterClient)(nil),
		"a Ring":                     ring,
	} {
		t.Run(what, func(t *testing.T) {
			client := holdfast.New(rdb, nil)
			wantEverywhere(t, client.Mutex(world.Name), holdfast.ErrBadArgument)
			if client.Mutex(world.Name).Name() != world.Name {
				t.Error("the name is lost")
			}
			must(t, client.Close())
		})
	}
}
