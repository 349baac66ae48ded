// A context ends at each moment of a call. The call returns at that moment, and leaves nothing behind.

package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// eachKind plays a scene with each kind of lock, each in a world of its own.
func eachKind(t *testing.T, scene func(w *world.World, kind lockertest.Kind)) {
	for _, kind := range lockertest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				scene(w, kind)
				for _, p := range w.Processes {
					p.Close()
				}
				if kind.Prepare == nil { // what was prepared stays
					redistest.LeftBehind(t, w.RDB, staying...)
				}
				w.RDB.FlushDB(t.Context())
			})
		})
	}
}

// contenders returns p's lock of that name, and q's, which it excludes.
func contenders(t *testing.T, kind lockertest.Kind, name string, p, q *holdfast.Client) (mine, theirs holdfast.Locker) {
	t.Helper()
	if kind.Prepare != nil {
		redistest.Must(t, kind.Prepare(t.Context(), q, name))
	}
	rival := kind.Locker
	if kind.Rival != nil {
		rival = kind.Rival
	}
	return kind.Locker(p, name), rival(q, name)
}

// turn locks and releases.
func turn(ctx context.Context, m holdfast.Locker) error {
	l, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	return l.Release(ctx)
}

// The process is new, and 20 ms away from its server: it dials, is granted a lock that is free, or waits for
// one until it is released.
func TestCancelledAtEachMoment(t *testing.T) {
	eachKind(t, func(w *world.World, kind lockertest.Kind) {
		rival := w.Process()
		for _, released := range []time.Duration{0, 200 * time.Millisecond} {
			for d, granted := time.Millisecond, false; !granted; d += 7 * time.Millisecond {
				p := w.FarAway(20 * time.Millisecond)
				mine, theirs := contenders(w.T, kind, fmt.Sprint(released, d), p.Client, rival.Client)
				if released > 0 {
					l := w.Lock(w.T.Context(), theirs)
					time.AfterFunc(released, func() { w.Release(l) })
				}
				granted = cancelled(w, mine, d)
				time.Sleep(2 * time.Second) // what an abandoned call took is given back by then
				next, err := theirs.TryLock(w.T.Context())
				if err != nil {
					w.T.Fatalf("a Lock that was cancelled after %v left the lock held: %v", d, err)
				}
				w.Release(next)
				p.Close()
			}
		}
	})
}

// cancelled locks with a context that ends after d, and says whether that is granted before.
func cancelled(w *world.World, m holdfast.Locker, d time.Duration) bool {
	ctx := redistest.Within(w.T, d)
	began := w.Now()
	l, err := m.Lock(ctx)
	if err == nil {
		w.Release(l)
		return true
	}
	world.WantErr(w.T, err, context.DeadlineExceeded)
	world.Within(w.T, "a Lock that is cancelled", w.Now()-began, d, d)
	return false
}

// The server takes connections as it should not, or none, or does not answer.
func TestCancelledWithoutAnAnswer(t *testing.T) {
	for what, break_ := range map[string]func(*redistest.FaultProxy){
		"mute":       func(p *redistest.FaultProxy) { p.Receive(redistest.Mute) },
		"slam":       func(p *redistest.FaultProxy) { p.Receive(redistest.Slam) },
		"change":     func(p *redistest.FaultProxy) { p.Receive(redistest.Change) },
		"full":       func(p *redistest.FaultProxy) { p.Receive(redistest.Full) },
		"refused":    func(p *redistest.FaultProxy) { p.Refuse(true) },
		"black hole": func(p *redistest.FaultProxy) { p.BlackHole(); p.Receive(redistest.Mute) },
	} {
		t.Run(what, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p := w.Process()
				if what == "black hole" {
					w.Release(w.Lock(t.Context(), p.MyLock))
				}
				break_(p.Net)
				for d := time.Millisecond; d < 5*time.Second; d = d*3 + time.Millisecond {
					if cancelled(w, p.MyLock, d) {
						t.Error("it was granted")
					}
				}
				began := w.Now()
				_ = p.Close()
				world.Within(t, "Close", w.Now()-began, 0, 1500*time.Millisecond)
				w.WantFree()
			})
		})
	}
}
