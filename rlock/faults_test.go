// This file plays the life of a hold, and lets each of its requests meet each fault of the network.

package rlock_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/rlock"
)

// after returns a channel that is closed when d has passed.
func after(d time.Duration) <-chan struct{} {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	_ = cancel // the timeout ends it
	return ctx.Done()
}

// networkFaults have what can happen to one request.
var networkFaults = map[string]func(p *world.Process) redistest.Fault{
	"reply lost":     func(*world.Process) redistest.Fault { return redistest.CloseAfterExec },
	"half a reply":   func(*world.Process) redistest.Fault { return redistest.HalfReply },
	"silence":        func(*world.Process) redistest.Fault { return redistest.Silence },
	"request lost":   func(*world.Process) redistest.Fault { return redistest.DropBefore },
	"executed twice": func(*world.Process) redistest.Fault { return redistest.Duplicate },
	"loading":        func(*world.Process) redistest.Fault { return redistest.ReplyError("LOADING Redis is loading") },
	"late":           func(*world.Process) redistest.Fault { return redistest.Delay(900 * time.Millisecond) },
	"answered late":  func(*world.Process) redistest.Fault { return redistest.HoldReply(after(800 * time.Millisecond)) },
	"sent again, and the first sending arrives after all is over": func(p *world.Process) redistest.Fault {
		time.AfterFunc(50*time.Millisecond, p.HangUp)
		return redistest.HoldUntil(after(900 * time.Millisecond))
	},
	"scripts forgotten": func(p *world.Process) redistest.Fault {
		p.W.RDB.ScriptFlush(context.Background())
		return redistest.Pass
	},
}

// Whatever becomes of one request, each call does what it says, counts and tokens are right, a
// deadline is never behind the end that Redis knows, and in the end nothing is left.
func TestEachRequestOfAHoldMeetsEachFault(t *testing.T) {
	for _, request := range []struct {
		script string
		n      int
	}{
		{world.LockRun, 1}, {world.RenewRun, 1}, {world.RecountRun, 1}, {world.RecountRun, 2}, {world.RenewRun, 2},
		{world.MoveRun, 1}, {world.FreeRun, 1}, {world.ReleaseRun, 1},
	} {
		for what, fault := range networkFaults {
			for kind, option := range map[string]holdfast.LeaseOption{"fixed": holdfast.Fixed(10 * time.Second), "renewed": holdfast.Renewed(10 * time.Second)} {
				if kind == "fixed" && request.script != world.LockRun {
					continue // only its grant differs
				}
				play(t, fmt.Sprint(request.script, request.n, ", ", what, ", ", kind), func(t *testing.T, w *world.World) {
					p, q := w.Process(), w.Process()
					awaited := request.script == world.ReleaseRun
					if awaited {
						w.Crowd(p, q)
					} else {
						w.Release(w.Lock(t.Context(), p.MyLock)) // now p knows the server's time
					}
					before := p.Runs(request.script)
					p.Each(func(s world.Sending) redistest.Fault {
						if s.Script == request.script && s.N == before+request.n {
							return fault(p)
						}
						return redistest.Pass
					})
					twice := what == "executed twice" && (request.script == world.FreeRun || awaited)
					wholeLife(w, q, p.Mutex(world.Name, option), awaited, twice)
					if p.Runs(request.script) < before+request.n {
						t.Error("no such request was sent")
					}
				})
			}
		}
	}
}

// wholeLife locks, extends, nests, detaches, attaches and releases, and q has the lock next, for which it waits if
// awaited is set. If twice is set, the network delivers the last release twice, and the second answer is heard.
func wholeLife(w *world.World, q *world.Process, m *rlock.Mutex, awaited, twice bool) {
	t := w.T
	look := func(what string, l *holdfast.Lease, count int) {
		t.Helper()
		synctest.Wait()
		w.WantHolder(l.Owner(), count)
		end := w.Now() + w.PTTL(world.Name)
		world.Within(t, what+": the deadline", l.Deadline().Sub(w.Start), min(end, w.Now()+10*time.Second)-1700*time.Millisecond, end-50*time.Millisecond)
		if token := w.RDB.Get(t.Context(), world.TokenKey).Val(); token != strconv.FormatInt(l.Token(), 10) {
			t.Errorf("%s: token %d, in Redis %s", what, l.Token(), token)
		}
	}
	l, err := m.TryLock(t.Context())
	must(t, err)
	look("locked", l, 1)
	must(t, l.Extend(t.Context(), time.Minute))
	look("extended", l, 1)
	inner := w.Lock(l.Context(t.Context()), m)
	look("nested", inner, 2)
	w.Release(inner)
	look("after the nested one", l, 1)
	token := l.Token()
	l = attach(t, m, detach(t, l))
	look("attached", l, 1)
	var waits *world.Attempt
	if awaited {
		waits = w.GoLock(t.Context(), q.MyLock)
		synctest.Wait()
	}
	if err := l.Release(t.Context()); twice {
		world.WantErr(t, err, holdfast.ErrLost)
	} else {
		must(t, err)
	}
	if !awaited {
		w.WantFree()
		waits = w.GoLock(t.Context(), q.MyLock)
	}
	next := granted(t, waits)
	if l.Token() != token || next.Token() <= token {
		t.Errorf("tokens %d, %d, and %d of the next one", token, l.Token(), next.Token())
	}
	w.At(w.Now() + 3*time.Second)
	w.WantHolder(next.Owner(), 1)
	w.Release(next)
	w.At(w.Now() + 1100*time.Millisecond)
	w.WantFree()
}

// Each renewal is answered late. The deadline is before the end that Redis knows, which counts from the request.
func TestTheDeadlineOfARenewalCountsFromItsRequest(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Renewed(10*time.Second)))
		p.Each(func(world.Sending) redistest.Fault { return redistest.DelayReply(800 * time.Millisecond) })
		w.At(21 * time.Second) // the last of its renewals has been answered
		inRedis := w.PTTL(world.Name)
		world.Within(t, "left", time.Until(l.Deadline()), inRedis-1700*time.Millisecond, inRedis-50*time.Millisecond)
		w.Release(l)
	})
}

// overtaken has the next run of a script arrive at 900 ms from now, and be sent again on another connection before.
func overtaken(p *world.Process, script string) {
	late := after(900 * time.Millisecond)
	p.On(script, 1, redistest.HoldUntil(late))
	time.AfterFunc(50*time.Millisecond, p.HangUp)
}

// A nested Lock is granted by its second sending, and released. Then its first sending arrives, and counts for nothing.
func TestTheFirstSendingOfANestedLockArrivesAfterItsRelease(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		overtaken(p, world.RecountRun)
		w.Release(w.Lock(l.Context(t.Context()), p.MyLock))
		w.At(1100 * time.Millisecond)
		w.WantHolder(l.Owner(), 1)
		w.Release(l)
	})
}

// A Lock is granted by its second sending, and detached, attached and released by others. Whenever its first sending
// arrives, the lock stays free.
func TestTheFirstSendingOfALockArrivesAfterItWasDetached(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		w.Release(w.Lock(t.Context(), p.MyLock)) // now p knows the server's time
		overtaken(p, world.LockRun)
		w.Release(attach(t, q.MyLock, detach(t, w.Lock(t.Context(), p.MyLock))))
		w.At(2 * time.Second)
		w.WantFree()
	})
}

// A caller gives up a call at 100 ms, and its request reaches Redis at some time after that. By
// 1005 ms, or when the request arrives, everything is as it was before the call; and it stays so.
// A step of the server's clock in between delays this by as much.
func TestACallThatIsGivenUpChangesNothing(t *testing.T) {
	for kind, script := range map[string]string{"lock": world.LockRun, "nested": world.RecountRun, "attach": world.MoveRun} {
		for _, tc := range []struct {
			what              string
			arrives, step, by time.Duration
		}{
			{"executed, not answered", 0, 0, 1005 * time.Millisecond},
			{"at once", 101 * time.Millisecond, 0, 1005 * time.Millisecond},
			{"before its not-after", 900 * time.Millisecond, 0, 1005 * time.Millisecond},
			{"after its not-after", 1100 * time.Millisecond, 0, 1100 * time.Millisecond},
			{"much later", 20 * time.Second, 0, 20 * time.Second},
			{"after a step back", 4 * time.Second, -5 * time.Second, 7 * time.Second},
			{"after a step forward", 4 * time.Second, 5 * time.Second, 7 * time.Second},
		} {
			play(t, kind+" "+tc.what, func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				w.Release(w.Lock(t.Context(), p.Mutex("another"))) // p knows the server's time
				again := p.MyLock.Lock                             // repeats the call
				before, asIs, free := t.Context(), w.WantFree, func() {}
				switch kind {
				case "nested":
					outer := w.Lock(before, p.MyLock)
					before, asIs = outer.Context(before), func() { w.WantHolder(outer.Owner(), 1) }
					free = func() { w.Release(outer) }
				case "attach":
					owner := detach(t, w.Lock(before, p.MyLock))
					again, asIs = func(ctx context.Context) (*holdfast.Lease, error) { return p.MyLock.Attach(ctx, owner) }, func() { w.WantHolder(owner, 1) }
				}
				arrive := make(chan struct{})
				fault := redistest.HoldUntil(arrive)
				if tc.arrives == 0 {
					fault = redistest.HoldReply(arrive)
				}
				p.On(script, 1, fault)
				ctx, cancel := context.WithCancel(before)
				call := w.Try(func() (*holdfast.Lease, error) { return again(ctx) })
				w.At(100 * time.Millisecond)
				cancel()
				world.WantErr(t, second(call.Result()), context.Canceled)
				world.Within(t, "returned at", call.At, 100*time.Millisecond, 100*time.Millisecond)
				if tc.step != 0 {
					defer w.Step(tc.step)()
				}
				w.At(max(tc.arrives, 100*time.Millisecond))
				close(arrive)
				w.At(tc.by)
				asIs()
				w.At(tc.by + 3*time.Second)
				asIs()
				l, err := again(before)
				must(t, err)
				w.Release(l)
				free()
				w.Release(w.Lock(t.Context(), q.MyLock))
			})
		}
	}
}
