// These tests show what holds when replies are lost, when requests are late, and when the process
// that does the work dies before or after its result is written.

package once_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/once"
)

// Whichever request or reply is lost or doubled, the work is done once, its result is kept, and both
// callers get it.
func TestValue_LostReplies(t *testing.T) {
	for _, script := range []string{world.OnceAskRun, world.OnceCompleteRun} {
		for what, fault := range map[string]redistest.Fault{
			"reply lost": redistest.CloseAfterExec, "request lost": redistest.DropBefore, "half a reply": redistest.HalfReply,
			"sent twice": redistest.Duplicate, "silence": redistest.Silence, "late": redistest.Delay(900 * time.Millisecond),
		} {
			t.Run(script+"/"+what, func(t *testing.T) {
				play(t, func(t *testing.T, w *world.World) {
					p, q := w.Process(), w.Process()
					j := &job{lasts: time.Second}
					p.On(script, 1, fault)
					q.On(script, 1, fault)
					first := call(t.Context(), w, p.Once(name), j)
					synctest.Wait()
					second := call(t.Context(), w, q.Once(name), j)
					(<-first).want(t, "result 1")
					(<-second).want(t, "result 1")
					if runs := j.runs.Load(); runs != 1 {
						t.Errorf("%d runs", runs)
					}
					(<-call(t.Context(), w, w.Process().Once(name), j)).want(t, "result 1")
				})
			})
		}
	}
}

// If the reply to a release of failed work is lost, the next caller works all the same, once.
func TestValue_LostReleases(t *testing.T) {
	for what, fault := range map[string]redistest.Fault{
		"reply lost": redistest.CloseAfterExec, "request lost": redistest.DropBefore, "half a reply": redistest.HalfReply,
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world.World) {
				p := w.Process()
				bad := errors.New("bad")
				p.On(world.OnceReleaseRun, 1, fault)
				if err := once.Do(t.Context(), p.Once(name), key, func(context.Context) error { return bad }); err != bad {
					t.Errorf("%v", err)
				}
				j := &job{}
				(<-call(t.Context(), w, w.Process().Once(name), j)).want(t, "result 1")
			})
		})
	}
}

func TestForget_LostReplies(t *testing.T) {
	for _, fault := range []redistest.Fault{redistest.CloseAfterExec, redistest.DropBefore, redistest.Duplicate} {
		play(t, func(t *testing.T, w *world.World) {
			p := w.Process()
			j := &job{}
			(<-call(t.Context(), w, p.Once(name), j)).want(t, "result 1")
			p.On(world.OnceForgetRun, 1, fault)
			if err := p.Once(name).Forget(t.Context(), key); err != nil {
				t.Error(err)
			}
			(<-call(t.Context(), w, p.Once(name), j)).want(t, "result 2")
		})
	}
}

// The process dies in the middle of the work. It is told before another takes over, which is when its
// lease is over. What it returns after that is not written.
func TestValue_DiesBeforeTheResult(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		lease := once.Lease(holdfast.Renewed(3 * time.Second))
		var tokens []int64
		var told time.Duration
		first := make(chan answer, 1)
		go func() {
			value, err := once.Value(t.Context(), p.Once(name, lease), key, func(ctx context.Context) (string, error) {
				tokens = append(tokens, once.Token(ctx))
				<-ctx.Done()
				told = w.Now()
				world.WantErr(t, context.Cause(ctx), holdfast.ErrLost)
				time.Sleep(time.Minute)
				return "too late", nil
			})
			first <- answer{value, err, w.Now()}
		}()
		w.At(time.Millisecond)
		p.Unplug(true)
		second := make(chan answer, 1)
		go func() {
			value, err := once.Value(t.Context(), q.Once(name, lease), key, func(ctx context.Context) (string, error) {
				tokens = append(tokens, once.Token(ctx))
				world.Within(t, "the next began", w.Now(), 3*time.Second, 3*time.Second+10*time.Millisecond)
				return "in time", nil
			})
			second <- answer{value, err, w.Now()}
		}()
		(<-second).want(t, "in time")
		p.Unplug(false)
		(<-first).want(t, "too late", holdfast.ErrLost)
		if told == 0 || told > 3*time.Second {
			t.Errorf("the first was told at %v", told)
		}
		if len(tokens) != 2 || tokens[1] <= tokens[0] {
			t.Errorf("tokens %v", tokens)
		}
		(<-call(t.Context(), w, p.Once(name), &job{})).want(t, "in time")
	})
}

// Work that outlasts its lease without a word from Redis, and returns before anybody else came: its
// result is not written either, since its holder was told that the hold is lost.
func TestValue_LostByItself(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		_, err := once.Value(t.Context(), p.Once(name), key, func(ctx context.Context) (string, error) {
			w.Mini.FlushAll() // Redis loses its data
			<-ctx.Done()
			return "done", nil
		})
		world.WantErr(t, err, holdfast.ErrLost)
		if w.Now() > 11*time.Second {
			t.Errorf("told at %v", w.Now())
		}
		(<-call(t.Context(), w, p.Once(name), &job{})).want(t, "result 1")
	})
}

// The process dies after its result was written, and before it hears of that: nobody does the work
// again.
func TestValue_DiesAfterTheResult(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		j := &job{lasts: time.Second}
		p.On(world.OnceCompleteRun, 1, redistest.Silence)
		first := call(t.Context(), w, p.Once(name), j)
		w.At(time.Second)
		p.Unplug(true)
		(<-call(t.Context(), w, q.Once(name), j)).want(t, "result 1")
		a := <-first
		a.want(t, "result 1", holdfast.ErrUnknown)
		p.Unplug(false)
		(<-call(t.Context(), w, p.Once(name), j)).want(t, "result 1")
		if j.runs.Load() != 1 {
			t.Errorf("%d runs", j.runs.Load())
		}
	})
}

// If Redis does not answer when the result is to be written, the caller is told, and the result is
// written later, within the lease.
func TestValue_ResultWrittenInTheBackground(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		j := &job{lasts: time.Second}
		first := call(t.Context(), w, p.Once(name), j)
		w.At(time.Second - time.Millisecond)
		p.Unplug(true)
		a := <-first
		a.want(t, "result 1", holdfast.ErrUnknown)
		world.Within(t, "the caller was told", a.at, 5*time.Second, 6*time.Second+10*time.Millisecond)
		second := call(t.Context(), w, q.Once(name), j)
		w.At(10 * time.Second)
		p.Unplug(false)
		b := <-second
		b.want(t, "result 1")
		world.Within(t, "the result came", b.at, 10*time.Second, 12*time.Second)
	})
}

// A request that asked for the work, and comes after the result was written and forgotten, leaves
// nothing behind.
func TestValue_LateAsk(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		late := make(chan struct{})
		p.On(world.OnceAskRun, 1, redistest.HoldUntil(late))
		j := &job{}
		first := call(t.Context(), w, p.Once(name), j)
		synctest.Wait()
		p.HangUp() // the request is on its way, and the call is sent again
		(<-first).want(t, "result 1")
		if err := p.Once(name).Forget(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		close(late)
		synctest.Wait()
		time.Sleep(3 * time.Second) // longer than the request may be late, and much shorter than the lease
		if w.Mini.Exists(record) {
			t.Errorf("left behind: %v", w.Holders(record))
		}
		(<-call(t.Context(), w, p.Once(name), j)).want(t, "result 2")
	})
}

// A caller that leaves while its request is on its way leaves nothing behind.
func TestValue_CancelledRequest(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		p.On(world.OnceAskRun, 1, redistest.Delay(500*time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		j := &job{}
		a := <-call(ctx, w, p.Once(name), j)
		a.want(t, "", context.DeadlineExceeded, holdfast.ErrUnavailable)
		w.At(3 * time.Second)
		if w.Mini.Exists(record) || j.runs.Load() != 0 {
			t.Errorf("left behind: %v, %d runs", w.Holders(record), j.runs.Load())
		}
	})
}

// Renewals keep the work going for as long as it takes; a fixed lease does not.
func TestValue_LongWork(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		j := &job{lasts: 10 * time.Minute}
		first := call(t.Context(), w, p.Once(name), j)
		synctest.Wait()
		second := call(t.Context(), w, q.Once(name), j)
		(<-first).want(t, "result 1")
		(<-second).want(t, "result 1")
		fixed := once.Lease(holdfast.Fixed(time.Second))
		err := once.Do(t.Context(), p.Once(name, fixed), "other", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		world.WantErr(t, err, holdfast.ErrExpired)
		err = once.Do(t.Context(), p.Once(name, once.Lease(holdfast.MaxHold(time.Second))), "third", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		world.WantErr(t, err, holdfast.ErrMaxHold)
	})
}

// If somebody removes the record while a sending of the result is in doubt, nothing shows any more
// whether it was written: the caller is told so.
func TestValue_ResultGoneWhileInDoubt(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		p.Each(func(s world.Sending) redistest.Fault {
			if s.Script == world.OnceCompleteRun && s.N == 1 {
				w.Mini.Del(record)
				return redistest.CloseAfterExec
			}
			return redistest.Pass
		})
		a := <-call(t.Context(), w, p.Once(name), &job{})
		a.want(t, "result 1", holdfast.ErrUnknown)
	})
}

// Each loss is told with the key and a reason.
func TestValue_LostErrorText(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		_, err := once.Value(t.Context(), p.Once(name), key, func(context.Context) (string, error) {
			w.Mini.Del(record)
			return "x", nil
		})
		world.WantErr(t, err, holdfast.ErrLost)
		owner := ""
		if _, scanErr := fmt.Sscanf(err.Error(), `holdfast: keep once "charge:order 7": owner %s lease lost`, &owner); scanErr != nil {
			t.Errorf("%v: %v", err, scanErr)
		}
	})
}
