// These tests show what happens when the network delays or loses requests and replies.

package fairlock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// Requests run, but their replies are lost. Even so, two holders never have the lock at the same
// time.
func TestLostReplies(t *testing.T) {
	for what, fault := range map[string]redistest.Fault{
		"closed after":  redistest.CloseAfterExec,
		"closed before": redistest.DropBefore,
		"half":          redistest.HalfReply,
		"twice":         redistest.Duplicate,
		"late":          redistest.Delay(600 * time.Millisecond),
		"very late":     redistest.Delay(1300 * time.Millisecond),
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *fairWorld) {
				var scripts atomic.Int64
				rule := func(c redistest.Command) redistest.Fault {
					if what == "twice" && !slices.Contains(c.Args, "30000") {
						return redistest.Pass // a release sent twice says that it held nothing
					}
					if c.Name == "EVALSHA" && scripts.Add(1)%7 == 0 {
						return fault
					}
					return redistest.Pass
				}
				var inside atomic.Int32
				var mu sync.Mutex
				var last int64
				var all sync.WaitGroup
				for range 3 {
					p := w.process()
					p.Net.OnCommand(rule)
					for range 3 {
						all.Go(func() {
							for range 6 {
								l, err := p.Lock(t.Context())
								if err != nil {
									t.Error(err)
									return
								}
								if inside.Add(1) != 1 {
									t.Error("two hold it")
								}
								mu.Lock()
								if l.Token() <= last {
									t.Errorf("token %d after %d", l.Token(), last)
								}
								last = l.Token()
								mu.Unlock()
								time.Sleep(time.Millisecond)
								inside.Add(-1)
								w.Release(l)
							}
						})
					}
				}
				all.Wait()
				time.Sleep(2 * time.Second) // time for the clean-ups
				synctest.Wait()
				w.wantQueue(0)
				world.Within(t, "all", w.Now(), 0, 3*time.Minute)
			})
		})
	}
}

// Contexts of waiters end at all kinds of instants. Such a waiter leaves neither a place nor a
// lock.
func TestGivingUpAtAnyInstant(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		slow := func(c redistest.Command) redistest.Fault {
			if c.Name == "EVALSHA" {
				return redistest.Delay(3 * time.Millisecond)
			}
			return redistest.Pass
		}
		var all sync.WaitGroup
		for i := range 4 {
			p := w.process()
			p.Net.OnCommand(slow)
			for k := range 5 {
				all.Go(func() {
					for n := range 15 {
						patience := time.Duration((n*37+i*11+k*5)%60+1) * time.Millisecond
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						l, err := p.Lock(ctx)
						cancel()
						switch {
						case err == nil:
							time.Sleep(2 * time.Millisecond)
							w.Release(l)
						case !errors.Is(err, context.DeadlineExceeded):
							t.Error(err)
						}
					}
				})
			}
		}
		all.Wait()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		w.wantQueue(0)
		if n := w.RDB.Exists(t.Context(), name).Val(); n != 0 {
			t.Errorf("held still: %v", w.RDB.HGetAll(t.Context(), name).Val())
		}
	})
}

// Every bad argument gives an error, and leaves Redis as it was.
func TestBadArguments(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		p := w.process()
		for what, m := range map[string]interface {
			QueueLength(context.Context) (int, error)
		}{
			"no name":       p.FairMutex(""),
			"reserved name": p.FairMutex("holdfast_x"),
			"no client":     holdfast.New(nil).FairMutex(name),
		} {
			if _, err := m.QueueLength(t.Context()); !errors.Is(err, holdfast.ErrBadArgument) {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := p.FairMutex(name, holdfast.Fixed(0)).Lock(t.Context())
		world.WantErr(t, err, holdfast.ErrBadArgument)

		w.RDB.Set(t.Context(), name, "precious", time.Minute)
		before := w.Mini.Snapshot()
		_, err = p.Lock(t.Context())
		world.WantErr(t, err, holdfast.ErrWrongType)
		synctest.Wait()
		if after := w.Mini.Snapshot(); after != before {
			t.Errorf("left %s, was %s", after, before)
		}
		w.RDB.Del(t.Context(), name)
		p.Close()
		_, err = p.Lock(t.Context())
		world.WantErr(t, err, holdfast.ErrClosed)
	})
}
