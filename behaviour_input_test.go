// This file shows that bad input is refused with a typed error and changes nothing in Redis.

package holdfast_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/rlock"
)

// everything calls each method of a mutex that sends a request to Redis, and returns their errors.
func everything(t *testing.T, m *rlock.Mutex) map[string]error {
	ctx, errs := t.Context(), make(map[string]error)
	owner := lease.NewOwner("6e0e2d3c-0000-4000-8000-000000000000", 1)
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
			wantEverywhere(t, client.Mutex(name), holdfast.ErrBadArgument)
			if client.Mutex(name).Name() != name {
				t.Error("the name is lost")
			}
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestInput_Leases(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		for _, d := range []time.Duration{0, -1, -time.Second, 1, lease.MinLease - 1} {
			for what, option := range map[string]lease.Option{"fixed": holdfast.Fixed(d), "renewed": holdfast.Renewed(d)} {
				m := p.Mutex(name, option)
				_, err := m.Lock(t.Context())
				wantErr(t, err, holdfast.ErrBadArgument)
				_, err = m.TryLock(t.Context())
				wantErr(t, err, holdfast.ErrBadArgument)
				_, err = m.Attach(t.Context(), lease.NewOwner("6e0e2d3c-0000-4000-8000-000000000000", 1))
				wantErr(t, err, holdfast.ErrBadArgument)
				if t.Failed() {
					t.Fatal(what, d)
				}
			}
		}
		_, err := p.Mutex(name, holdfast.MaxHold(-1)).Lock(t.Context())
		wantErr(t, err, holdfast.ErrBadArgument)
		_, err = p.mutex.Attach(t.Context(), holdfast.Owner{})
		wantErr(t, err, holdfast.ErrBadArgument)

		l := w.lock(t.Context(), p.mutex)
		before := p.runs("")
		_, err = p.Mutex(name, holdfast.Fixed(0)).Lock(l.Context(t.Context()))
		wantErr(t, err, holdfast.ErrBadArgument)
		for _, d := range []time.Duration{0, -time.Second, lease.MinLease - 1} {
			wantErr(t, l.Extend(t.Context(), d), holdfast.ErrBadArgument)
		}
		if n := p.runs("") - before; n != 0 {
			t.Errorf("%d requests", n)
		}
		w.wantTTL(30 * time.Second)
		w.release(l)

		shortest := w.lock(t.Context(), p.Mutex(name, nil, holdfast.Fixed(lease.MinLease)))
		w.wantTTL(lease.MinLease)
		w.release(shortest)
	})
}

func TestInput_Names(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		for _, bad := range []string{"", "redisson_lock_token:{a}", "holdfast_x", "redisson_lock_queue:{a}"} {
			wantEverywhere(t, p.Mutex(bad), holdfast.ErrBadArgument)
		}
		if n := p.runs(""); n != 0 {
			t.Errorf("%d requests", n)
		}
		for _, good := range []string{" ", "a", "a b\r\n", "\x00\xff", "{", "}", "{}", "a}b", "{a}b", "grüße", fmt.Sprintf("%0600d", 7)} {
			l, err := p.Mutex(good).TryLock(t.Context())
			if err != nil {
				t.Errorf("%q: %v", good, err)
				continue
			}
			if got := w.holders(good); len(got) != 1 {
				t.Errorf("%q: held by %q", good, got)
			}
			w.release(l)
			for _, key := range w.mini.Keys() {
				w.mini.Del(key) // odd names have tokens of another prefix
			}
		}
	})
}

// For some names Redisson looks for the tokens or permits in another place. Holdfast makes no
// tokens to share and no permits for such a name. A plain lock may have such a name, since its key
// is the name itself.
func TestNamesThatCannotBeShared(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		for _, name := range []string{"a}b", "a{", "{}x"} {
			wantEverywhere(t, p.Mutex(name, holdfast.JavaTokens()), holdfast.ErrBadArgument)
			wantErr(t, p.Semaphore(name).Acquire(t.Context(), 1), holdfast.ErrBadArgument)
			wantErr(t, p.PermitSemaphore(name).SetPermits(t.Context(), 1), holdfast.ErrBadArgument)
			for _, m := range []lease.Locker{p.FairMutex(name, holdfast.JavaTokens()), p.RWMutex(name)} {
				_, err := m.Lock(t.Context())
				wantErr(t, err, holdfast.ErrBadArgument)
			}
		}
		if n := p.runs(""); n != 0 {
			t.Errorf("%d requests", n)
		}
		l := w.lock(t.Context(), p.Mutex("a}b"))
		info, err := p.Inspect(t.Context(), "a}b")
		if err != nil || len(info.Holders) != 1 || info.Holders[0].Owner != l.Owner() {
			t.Errorf("Inspect() = %+v, %v", info, err)
		}
		w.release(l)
		for _, key := range w.mini.Keys() {
			w.mini.Del(key) // the token has another prefix
		}
	})
}

// A key that is not a lock is left as it is.
func TestWrongType(t *testing.T) {
	for kind, set := range map[string]func(w *world){
		"string": func(w *world) { w.rdb.Set(w.t.Context(), name, "precious", time.Hour) },
		"list":   func(w *world) { w.rdb.RPush(w.t.Context(), name, "precious") },
		"zset":   func(w *world) { w.rdb.ZAdd(w.t.Context(), name, redis.Z{Score: 1, Member: "precious"}) },
	} {
		t.Run(kind, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				set(w)
				before := w.mini.Snapshot()
				wantEverywhere(t, p.mutex, holdfast.ErrWrongType)
				if after := w.mini.Snapshot(); after != before {
					t.Errorf("before\n%s\nafter\n%s", before, after)
				}
				w.rdb.Del(t.Context(), name)

				// A lock that is held is replaced by the other type. The key is again left as it
				// is.
				l := w.lock(t.Context(), p.mutex)
				w.rdb.Del(t.Context(), name)
				set(w)
				before = w.mini.Snapshot()
				wantErr(t, l.Release(t.Context()), holdfast.ErrWrongType)
				if after := w.mini.Snapshot(); after != before {
					t.Errorf("before\n%s\nafter\n%s", before, after)
				}
				w.rdb.Del(t.Context(), name)
			})
		})
	}
}

func TestASecondRelease(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		l := w.lock(t.Context(), p.mutex)
		w.release(l)
		next := w.lock(t.Context(), q.mutex)
		before := w.mini.Snapshot()
		wantErr(t, l.Release(t.Context()), holdfast.ErrReleased)
		wantErr(t, l.Extend(t.Context(), time.Minute), holdfast.ErrReleased)
		_, err := l.Detach(t.Context())
		wantErr(t, err, holdfast.ErrReleased)
		if after := w.mini.Snapshot(); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
		w.release(next)
	})
}
