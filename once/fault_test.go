// These tests show what holds when requests are late, and when the process that does the work dies; and that work which
// goes on after its hold was lost is in nobody's way. In internal/test/faults each operation meets each mishap of a network.

package once_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/once"
)

// The process dies in the middle of the work. It is told before another takes over, which is when its
// lease is over. What it returns after that is not written.
func TestValue_DiesBeforeTheResult(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		lease := once.Lease(holdfast.Renewed(3 * time.Second))
		var tokens []int64
		var told time.Duration
		first := value(t.Context(), w, p.Once(name, lease), func(ctx context.Context) (string, error) {
			tokens = append(tokens, once.Token(ctx))
			<-ctx.Done()
			told = w.Now()
			world.WantErr(t, context.Cause(ctx), holdfast.ErrLost)
			time.Sleep(time.Minute)
			return "too late", nil
		})
		p.Unplug(true)
		second := value(t.Context(), w, q.Once(name, lease), func(ctx context.Context) (string, error) {
			tokens = append(tokens, once.Token(ctx))
			world.Within(t, "the next began", w.Now(), 3*time.Second, 3*time.Second+10*time.Millisecond)
			return "in time", nil
		})
		(<-second).want(t, "in time")
		p.Unplug(false)
		(<-first).want(t, "too late", holdfast.ErrLost)
		if told == 0 || told > 3*time.Second || len(tokens) != 2 || tokens[1] <= tokens[0] {
			t.Errorf("the first was told at %v; tokens %v", told, tokens)
		}
		gets(t, w, p.Once(name), &job{}, "in time")
	})
}

// Work that outlasts its lease without a word from Redis, and returns before anybody else came: its
// result is not written either, since its holder was told that the hold is lost.
func TestValue_LostByItself(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		err := once.Do(t.Context(), p.Once(name), key, func(ctx context.Context) error {
			w.Mini.FlushAll() // Redis loses its data
			<-ctx.Done()
			return nil
		})
		if world.WantErr(t, err, holdfast.ErrLost); w.Now() > 11*time.Second {
			t.Errorf("told at %v", w.Now())
		}
		gets(t, w, p.Once(name), &job{}, "result 1")
	})
}

// If Redis does not answer when the result is to be written, the caller is told, and the result is
// written later, within the lease.
func TestValue_ResultWrittenInTheBackground(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		j := &job{lasts: time.Second}
		first := call(t.Context(), w, p.Once(name), j)
		w.At(time.Second - time.Millisecond)
		p.Unplug(true)
		a := (<-first).want(t, "result 1", holdfast.ErrUnknown)
		world.Within(t, "the caller was told", a.at, 5*time.Second, 6*time.Second+10*time.Millisecond)
		second := call(t.Context(), w, q.Once(name), j)
		w.At(10 * time.Second)
		p.Unplug(false)
		b := (<-second).want(t, "result 1")
		world.Within(t, "the result came", b.at, 10*time.Second, 12*time.Second)
	})
}

// A request that asked for the work, and comes after the result was written and forgotten, leaves nothing behind.
func TestValue_LateAsk(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		late := make(chan struct{})
		p.On(world.OnceAskRun, 1, redistest.HoldUntil(late))
		j := &job{}
		first := call(t.Context(), w, p.Once(name), j)
		p.HangUp() // the request is on its way, and the call is sent again
		(<-first).want(t, "result 1")
		must(t, p.Once(name).Forget(t.Context(), key))
		close(late)
		synctest.Wait()
		time.Sleep(3 * time.Second) // longer than the request may be late, and much shorter than the lease
		if w.Mini.Exists(record) {
			t.Errorf("left behind: %v", w.Holders(record))
		}
		gets(t, w, p.Once(name), j, "result 2")
	})
}

// A caller that leaves while its request is on its way leaves nothing behind.
func TestValue_CancelledRequest(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		p.On(world.OnceAskRun, 1, redistest.Delay(500*time.Millisecond))
		ctx := redistest.Within(t, 100*time.Millisecond)
		j := &job{}
		(<-call(ctx, w, p.Once(name), j)).want(t, "", context.DeadlineExceeded, holdfast.ErrUnavailable)
		w.At(3 * time.Second)
		if j.ran(t, 0); w.Mini.Exists(record) {
			t.Errorf("left behind: %v", w.Holders(record))
		}
	})
}

// If somebody removes the record while a sending of the result is in doubt, nothing shows any more
// whether it was written: the caller is told so.
func TestValue_ResultGoneWhileInDoubt(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		p.Each(func(s world.Sending) redistest.Fault {
			if s.Script == world.OnceCompleteRun && s.N == 1 {
				w.Mini.Del(record)
				return redistest.CloseAfterExec
			}
			return redistest.Pass
		})
		gets(t, w, p.Once(name), &job{}, "result 1", holdfast.ErrUnknown)
	})
}

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
		"fixed":   {[]once.Option{once.Lease(holdfast.Fixed(time.Second))}, func(*world.World) {}, holdfast.ErrExpired},
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
