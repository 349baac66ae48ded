// This file is about answers that come late, and about calls that are given up before they are answered. What else a
// request may meet is in internal/test/faults.

package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// Each answer comes late. The deadline is never behind the end that Redis knows, which counts from the request, and is not
// far before it.
func TestTheDeadlineCountsFromTheRequest(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		p.Each(func(world.Sending) redistest.Fault { return redistest.DelayReply(800 * time.Millisecond) })
		m := p.Mutex(world.Name, holdfast.Renewed(10*time.Second))
		want := func(what string, l *holdfast.Lease) {
			t.Helper()
			inRedis := w.PTTL(world.Name)
			world.Within(t, what+": left", time.Until(l.Deadline()), min(inRedis, 10*time.Second)-1700*time.Millisecond, inRedis-50*time.Millisecond)
		}
		l := w.Lock(t.Context(), m)
		want("locked", l)
		must(t, l.Extend(t.Context(), 20*time.Second))
		want("extended", l)
		w.At(21 * time.Second) // it has been renewed some times, and the last renewal has been answered
		want("renewed", l)
		inner := w.Lock(l.Context(t.Context()), m)
		want("nested", inner)
		w.Release(inner)
		l = attach(t, m, detach(t, l))
		want("attached", l)
		w.Release(l)

		l = w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Fixed(10*time.Second)))
		want("fixed", l)
		w.Release(l)
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
