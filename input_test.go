// This file shows that bad input is refused with a typed error and changes nothing in Redis.

package holdfast_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/rlock"
)

// everything calls each method of a mutex that sends a request to Redis, and returns their errors.
func everything(t *testing.T, m *rlock.Mutex) map[string]error {
	ctx, errs := t.Context(), make(map[string]error)
	owner := lease.Owner(hold.NewOwner("6e0e2d3c-0000-4000-8000-000000000000", 1))
	_, errs["Lock"] = m.Lock(ctx)
	_, errs["TryLock"] = m.TryLock(ctx)
	_, errs["Attach"] = m.Attach(ctx, owner)
	_, errs["Locked"] = m.Locked(ctx)
	_, errs["HeldBy"] = m.HeldBy(ctx, owner)
	_, errs["HoldCount"] = m.HoldCount(ctx, owner)
	_, errs["Remaining"] = m.Remaining(ctx)
	_, errs["Holder"] = m.Holder(ctx)
	_, errs["ForceRelease"] = m.ForceRelease(ctx)
	return errs
}

func wantEverywhere(t *testing.T, m *rlock.Mutex, want error) {
	t.Helper()
	for what, err := range everything(t, m) {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
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
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestInput_Leases(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		for _, d := range []time.Duration{0, -1, -time.Second, 1, lease.MinLease - 1} {
			for what, option := range map[string]lease.Option{"fixed": holdfast.Fixed(d), "renewed": holdfast.Renewed(d)} {
				m := p.Mutex(world.Name, option)
				_, err := m.Lock(t.Context())
				world.WantErr(t, err, holdfast.ErrBadArgument)
				_, err = m.TryLock(t.Context())
				world.WantErr(t, err, holdfast.ErrBadArgument)
				_, err = m.Attach(t.Context(), lease.Owner(hold.NewOwner("6e0e2d3c-0000-4000-8000-000000000000", 1)))
				world.WantErr(t, err, holdfast.ErrBadArgument)
				if t.Failed() {
					t.Fatal(what, d)
				}
			}
		}
		_, err := p.Mutex(world.Name, holdfast.MaxHold(-1)).Lock(t.Context())
		world.WantErr(t, err, holdfast.ErrBadArgument)
		_, err = p.MyLock.Attach(t.Context(), holdfast.Owner{})
		world.WantErr(t, err, holdfast.ErrBadArgument)

		l := w.Lock(t.Context(), p.MyLock)
		before := p.Runs("")
		_, err = p.Mutex(world.Name, holdfast.Fixed(0)).Lock(l.Context(t.Context()))
		world.WantErr(t, err, holdfast.ErrBadArgument)
		for _, d := range []time.Duration{0, -time.Second, lease.MinLease - 1} {
			world.WantErr(t, l.Extend(t.Context(), d), holdfast.ErrBadArgument)
		}
		if n := p.Runs("") - before; n != 0 {
			t.Errorf("%d requests", n)
		}
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
		if n := p.Runs(""); n != 0 {
			t.Errorf("%d requests", n)
		}
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

// For some names Redisson looks for the tokens or permits in another place. Holdfast makes no
// tokens to share and no permits for such a name. A plain lock may have such a name, since its key
// is the name itself.
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
		if n := p.Runs(""); n != 0 {
			t.Errorf("%d requests", n)
		}
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
	for kind, set := range map[string]func(w *world.World){
		"string": func(w *world.World) { w.RDB.Set(w.T.Context(), world.Name, "precious", time.Hour) },
		"list":   func(w *world.World) { w.RDB.RPush(w.T.Context(), world.Name, "precious") },
		"zset":   func(w *world.World) { w.RDB.ZAdd(w.T.Context(), world.Name, redis.Z{Score: 1, Member: "precious"}) },
	} {
		t.Run(kind, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p := w.Process()
				set(w)
				before := w.Mini.Snapshot()
				wantEverywhere(t, p.MyLock, holdfast.ErrWrongType)
				if after := w.Mini.Snapshot(); after != before {
					t.Errorf("before\n%s\nafter\n%s", before, after)
				}
				w.RDB.Del(t.Context(), world.Name)

				// A lock that is held is replaced by the other type. The key is again left as it
				// is.
				l := w.Lock(t.Context(), p.MyLock)
				w.RDB.Del(t.Context(), world.Name)
				set(w)
				before = w.Mini.Snapshot()
				world.WantErr(t, l.Release(t.Context()), holdfast.ErrWrongType)
				if after := w.Mini.Snapshot(); after != before {
					t.Errorf("before\n%s\nafter\n%s", before, after)
				}
				w.RDB.Del(t.Context(), world.Name)
			})
		})
	}
}

func TestASecondRelease(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		w.Release(l)
		next := w.Lock(t.Context(), q.MyLock)
		before := w.Mini.Snapshot()
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrReleased)
		world.WantErr(t, l.Extend(t.Context(), time.Minute), holdfast.ErrReleased)
		_, err := l.Detach(t.Context())
		world.WantErr(t, err, holdfast.ErrReleased)
		if after := w.Mini.Snapshot(); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
		w.Release(next)
	})
}
