// This file shows what the error of each kind says where another type of value stands at its name.

package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
)

// What the errors say of each sort of value.
const (
	saysString = "a string stands there, as redsync, redislock and other locks by SET NX leave it; docs/from says how to come from them"
	saysNumber = "a number stands there, as a Semaphore or a Latch keeps it, or a lock by SET NX; give each kind a name of its own"
	saysHash   = "a hash stands there, as a Mutex or an RWMutex keeps it; give each kind a name of its own"
	saysList   = "a list stands there; is it another program's?"
	saysZset   = "a zset stands there; is it another program's?"
)

// values are values that are not a lock, by their sort, and set one at the name.
var values = map[string]func(w *world.World){
	"string": func(w *world.World) { w.RDB.Set(w.T.Context(), world.Name, "q1Zx7vLbT0aWc9sEo5mRUg==", 0) },
	"number": func(w *world.World) { w.RDB.Set(w.T.Context(), world.Name, 3, 0) },
	"hash":   func(w *world.World) { w.RDB.HSet(w.T.Context(), world.Name, javaHolder(), 1) },
	"list":   func(w *world.World) { w.RDB.RPush(w.T.Context(), world.Name, "precious") },
	"zset":   func(w *world.World) { w.RDB.Do(w.T.Context(), "ZADD", world.Name, 1, "precious") },
}

// The calls that take something at the name, by kind: ofLocks are those of kinds that keep a hash
// there, ofCounts those of kinds that keep a number.
var (
	ofLocks = map[string]func(ctx context.Context, p *world.Process) error{
		"Mutex.Lock":     func(ctx context.Context, p *world.Process) error { return errorOf(p.MyLock.Lock(ctx)) },
		"Mutex.TryLock":  func(ctx context.Context, p *world.Process) error { return errorOf(p.MyLock.TryLock(ctx)) },
		"FairMutex.Lock": func(ctx context.Context, p *world.Process) error { return errorOf(p.FairMutex(world.Name).Lock(ctx)) },
		"FairMutex.TryLock": func(ctx context.Context, p *world.Process) error {
			return errorOf(p.FairMutex(world.Name).TryLock(ctx))
		},
		"RWMutex.Lock":  func(ctx context.Context, p *world.Process) error { return errorOf(p.RWMutex(world.Name).Lock(ctx)) },
		"RWMutex.RLock": func(ctx context.Context, p *world.Process) error { return errorOf(p.RWMutex(world.Name).RLock(ctx)) },
		"Leader.Run": func(ctx context.Context, p *world.Process) error {
			return p.Leader(world.Name).Run(ctx, func(context.Context, *leader.Term) error { return nil })
		},
		"MultiLock.Lock": func(ctx context.Context, p *world.Process) error {
			return errorOf(holdfast.NewMultiLock(p.MyLock, p.Mutex("other")).Lock(ctx))
		},
		"Do": func(ctx context.Context, p *world.Process) error {
			return holdfast.Do(ctx, p.MyLock, func(context.Context) error { return nil })
		},
	}
	ofCounts = map[string]func(ctx context.Context, p *world.Process) error{
		"Semaphore.Acquire":    func(ctx context.Context, p *world.Process) error { return p.Semaphore(world.Name).Acquire(ctx, 1) },
		"Semaphore.TryAcquire": func(ctx context.Context, p *world.Process) error { return p.Semaphore(world.Name).TryAcquire(ctx, 1) },
		"Semaphore.TrySetPermits": func(ctx context.Context, p *world.Process) error {
			return errorOf(p.Semaphore(world.Name).TrySetPermits(ctx, 1))
		},
		"PermitSemaphore.Acquire": func(ctx context.Context, p *world.Process) error {
			return errorOf(p.PermitSemaphore(world.Name).Acquire(ctx, 1))
		},
		"PermitSemaphore.TrySetPermits": func(ctx context.Context, p *world.Process) error {
			return errorOf(p.PermitSemaphore(world.Name).TrySetPermits(ctx, 1))
		},
		"Latch.Wait": func(ctx context.Context, p *world.Process) error { return p.Latch(world.Name).Wait(ctx) },
		"Latch.TrySetCount": func(ctx context.Context, p *world.Process) error {
			return errorOf(p.Latch(world.Name).TrySetCount(ctx, 1))
		},
	}
)

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }

// The error of each kind names what stands there, and what to do. It costs one request more, and the
// value stays as it is.
func TestForeign_EachKindNamesWhatStandsThere(t *testing.T) {
	for _, tc := range []struct {
		value string
		says  string
		of    map[string]func(ctx context.Context, p *world.Process) error
	}{
		{"string", saysString, ofLocks},
		{"number", saysNumber, ofLocks},
		{"list", saysList, ofLocks},
		{"zset", saysZset, ofLocks},
		{"string", saysString, ofCounts},
		{"hash", saysHash, ofCounts},
		{"list", saysList, ofCounts},
		{"zset", saysZset, ofCounts},
	} {
		for kind, take := range tc.of {
			t.Run(tc.value+"/"+kind, func(t *testing.T) {
				world.Play(t, func(t *testing.T, w *world.World) {
					p := w.Process()
					values[tc.value](w)
					before := w.Mini.Snapshot()
					err := take(t.Context(), p)
					world.WantErr(t, err, holdfast.ErrWrongType)
					if text := err.Error(); !strings.HasSuffix(text, tc.says) || strings.Count(text, world.Name) != 1 {
						t.Errorf("%s, want the name once, and ...%s", text, tc.says)
					}
					if n := p.Runs(world.TypeRun); n != 1 {
						t.Errorf("asked for the type %d times", n)
					}
					if after := w.Mini.Snapshot(); after != before {
						t.Errorf("before\n%s\nafter\n%s", before, after)
					}
					w.Mini.Del(world.Name)
				})
			})
		}
	}
}

// What succeeds, is busy or is cancelled asks nothing more.
func TestForeign_OtherOutcomesCostNothing(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		_, err := q.MyLock.TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		w.Release(l)
		if n := p.Runs(world.TypeRun) + q.Runs(world.TypeRun); n != 0 {
			t.Errorf("asked for the type %d times", n)
		}
	})
}

// If Redis refuses to name the type, or loses the reply, the error is still one of a wrong type.
func TestForeign_RedisDoesNotSay(t *testing.T) {
	for what, fault := range map[string]redistest.Fault{
		"refused": redistest.ReplyError("NOPERM no TYPE"),
		"silent":  redistest.Silence,
	} {
		t.Run(what, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p := w.Process()
				values["string"](w)
				p.Each(func(s world.Sending) redistest.Fault {
					if s.Script == world.TypeRun {
						return fault
					}
					return redistest.Pass
				})
				_, err := p.MyLock.TryLock(t.Context())
				world.WantErr(t, err, holdfast.ErrWrongType)
				if errors.Is(err, holdfast.ErrDenied) || strings.Contains(err.Error(), "stands there") {
					t.Errorf("the error tells of the question: %v", err)
				}
				w.Mini.Del(world.Name)
			})
		})
	}
}

// On real servers, whose errors have other words, the answers are the same.
func TestForeign_RealServers(t *testing.T) {
	rdb := redistest.Server(t).Client(t)
	c := holdfast.New(rdb)
	defer c.Close()
	ctx := t.Context()
	rdb.Set(ctx, "string", "q1Zx7vLbT0aWc9sEo5mRUg==", 0)
	rdb.Set(ctx, "number", 3, 0)
	rdb.RPush(ctx, "list", "precious")
	rdb.HSet(ctx, "hash", javaHolder(), 1)
	for name, says := range map[string]string{"string": saysString, "number": saysNumber, "list": saysList} {
		if _, err := c.Mutex(name).TryLock(ctx); !errors.Is(err, holdfast.ErrWrongType) || !strings.HasSuffix(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, says := range map[string]string{"string": saysString, "hash": saysHash, "list": saysList} {
		if err := c.Semaphore(name).TryAcquire(ctx, 1); !errors.Is(err, holdfast.ErrWrongType) || !strings.HasSuffix(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
