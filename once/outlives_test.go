// These tests show that work which goes on after its hold was lost is in nobody's way.

package once_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/once"
)

// deaf is work that does not look at its ctx, and hangs for an hour.
func deaf(context.Context) (string, error) {
	time.Sleep(time.Hour)
	return "of the deaf one", nil
}

// The process of deaf work is cut off for longer than the lease, and another process does the work. The callers of
// the first process, those that waited and those that come, get that result, whatever the deaf work does.
func TestValue_WorkThatOutlivesItsHoldHidesNoResult(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		lease := once.Lease(holdfast.Renewed(3 * time.Second))
		j := &job{}
		stuck := value(t.Context(), w, p.Once(name, lease), deaf)
		first, second := call(t.Context(), w, p.Once(name, lease), j), call(t.Context(), w, p.Once(name, lease), j)
		p.Unplug(true)
		w.At(4 * time.Second)
		gets(t, w, q.Once(name, lease), j, "result 1")
		p.Unplug(false)
		for _, c := range []<-chan answer{first, second} {
			world.Within(t, "the answer to one that waited", (<-c).want(t, "result 1").at, 4*time.Second, 6*time.Second)
		}
		w.At(time.Minute)
		(<-call(t.Context(), w, p.Once(name, lease), j)).wantAt(t, time.Minute, "result 1")
		(<-stuck).wantAt(t, time.Hour, "of the deaf one", holdfast.ErrLost)
		gets(t, w, p.Once(name, lease), j, "result 1")
		j.ran(t, 1)
	})
}

// In a process alone one of those that wait does the work, as one of another process would, and the rest share what
// it has made. The deaf work comes to its end in the middle of that, and changes nothing.
func TestValue_OneThatWaitsTakesOver(t *testing.T) {
	for how, tc := range map[string]struct {
		options []once.Option
		end     func(w *world.World)
		cause   error
	}{
		"lost":    {nil, func(w *world.World) { w.Mini.Del(record) }, holdfast.ErrLost},
		"MaxHold": {[]once.Option{once.Lease(holdfast.MaxHold(time.Second))}, func(*world.World) {}, holdfast.ErrMaxHold},
		"Fixed":   {[]once.Option{once.Lease(holdfast.Fixed(time.Second))}, func(*world.World) {}, holdfast.ErrLost},
	} {
		t.Run(how, func(t *testing.T) {
			play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
				o := p.Once(name, tc.options...)
				stuck := value(t.Context(), w, o, func(ctx context.Context) (string, error) {
					<-ctx.Done()
					time.Sleep(40 * time.Second)
					return "", context.Cause(ctx)
				})
				j := &job{lasts: time.Minute}
				var others []<-chan answer
				for range 3 {
					others = append(others, call(t.Context(), w, p.Once(name), j))
				}
				tc.end(w)
				a := (<-stuck).want(t, "", tc.cause)
				j.ran(t, 1) // already
				others = append(others, call(t.Context(), w, p.Once(name), j))
				for _, c := range others {
					world.Within(t, "the answer", (<-c).want(t, "result 1").at, a.at, a.at+time.Minute)
				}
				j.ran(t, 1)
			})
		})
	}
}

// Work that has lost its hold may call Value with its own key, by a context that was detached: it is a caller as any
// other then, does not wait for itself, and keeps nobody.
func TestValue_OfWorkThatHasLostItsHold(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		j := &job{}
		o := p.Once(name)
		outer := value(t.Context(), w, o, func(ctx context.Context) (string, error) {
			<-ctx.Done()
			detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			inner, err := once.Value(detached, o, key, j.do)
			return inner, errors.Join(err, context.Cause(ctx))
		})
		w.Mini.Del(record)
		a := (<-outer).want(t, "result 1", holdfast.ErrLost)
		if a.at > 11*time.Second {
			t.Errorf("it waited until %v", a.at)
		}
		gets(t, w, o, j, "result 1")
	})
}
