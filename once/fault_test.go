// These tests show what holds when replies are lost, when requests are late, and when the process
// that does the work dies before or after its result is written.

package once_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/once"
)

// Whichever request or reply is lost, doubled or late, the work is done once, its result is kept, and
// both callers get it. What has failed, or was forgotten, is done anew, once.
func TestValue_LostReplies(t *testing.T) {
	for what, fault := range faults {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world.World, _, _ *world.Process) {
				for i, script := range []string{world.OnceAskRun, world.OnceCompleteRun, world.OnceReleaseRun, world.OnceForgetRun} {
					p, q, of := w.Process(), w.Process(), fmt.Sprint(name, i)
					t.Logf("%s, at %v", script, w.Now())
					p.On(script, 1, fault)
					q.On(script, 1, fault)
					bad := errors.New("bad")
					if script == world.OnceReleaseRun { // of work that fails
						world.WantErr(t, once.Do(t.Context(), p.Once(of), key, func(context.Context) error { return bad }), bad)
					}
					j := &job{lasts: time.Second}
					first, second := call(t.Context(), w, p.Once(of), j), call(t.Context(), w, q.Once(of), j)
					(<-first).want(t, "result 1")
					(<-second).want(t, "result 1")
					gets(t, w, w.Process().Once(of), j, "result 1")
					if err := p.Once(of).Forget(t.Context(), key); err != nil {
						t.Error(err)
					}
					gets(t, w, q.Once(of), j, "result 2")
				}
			})
		})
	}
}

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

// The process dies after its result was written, and before it hears of that: nobody does the work
// again.
func TestValue_DiesAfterTheResult(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		j := &job{lasts: time.Second}
		p.On(world.OnceCompleteRun, 1, redistest.Silence)
		first := call(t.Context(), w, p.Once(name), j)
		w.At(time.Second)
		p.Unplug(true)
		gets(t, w, q.Once(name), j, "result 1")
		(<-first).want(t, "result 1", holdfast.ErrUnknown)
		p.Unplug(false)
		gets(t, w, p.Once(name), j, "result 1")
		j.ran(t, 1)
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

// A request that asked for the work, and comes after the result was written and forgotten, leaves
// nothing behind.
func TestValue_LateAsk(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		late := make(chan struct{})
		p.On(world.OnceAskRun, 1, redistest.HoldUntil(late))
		j := &job{}
		first := call(t.Context(), w, p.Once(name), j)
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
		gets(t, w, p.Once(name), j, "result 2")
	})
}

// A caller that leaves while its request is on its way leaves nothing behind.
func TestValue_CancelledRequest(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		p.On(world.OnceAskRun, 1, redistest.Delay(500*time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		j := &job{}
		(<-call(ctx, w, p.Once(name), j)).want(t, "", context.DeadlineExceeded, holdfast.ErrUnavailable)
		w.At(3 * time.Second)
		if j.ran(t, 0); w.Mini.Exists(record) {
			t.Errorf("left behind: %v", w.Holders(record))
		}
	})
}

// Renewals keep the work going for as long as it takes; a fixed lease and a MaxHold do not.
func TestValue_LongWork(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		j := &job{lasts: 3 * time.Minute}
		first, second := call(t.Context(), w, p.Once(name), j), call(t.Context(), w, q.Once(name), j)
		(<-first).want(t, "result 1")
		(<-second).want(t, "result 1")
		untilOver := &job{lasts: time.Minute}
		gets(t, w, p.Once("fixed", once.Lease(holdfast.Fixed(time.Second))), untilOver, "", holdfast.ErrExpired)
		gets(t, w, p.Once("bounded", once.Lease(holdfast.MaxHold(time.Second))), untilOver, "", holdfast.ErrMaxHold)
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

// ledger is what was done for each key, by the tokens of those that did it, and what callers were told.
type ledger struct {
	mu      sync.Mutex
	effects map[int][]int64
	got     map[int][]int64
	excused map[string]bool // "key token": its caller was told of a loss, or that nobody knows
	lost    int             // requests and replies
}

// work does the work of a key as one of its callers, until there is a result.
func (l *ledger) work(ctx context.Context, o *once.Once, n int, random *rand.Rand) error {
	for {
		mine := int64(0)
		got, err := once.Value(ctx, o, fmt.Sprint(n), func(ctx context.Context) (int64, error) {
			time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
			l.mu.Lock()
			mine = once.Token(ctx)
			l.effects[n] = append(l.effects[n], mine)
			l.mu.Unlock()
			time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
			return mine, nil
		})
		l.mu.Lock()
		lost := errors.Is(err, holdfast.ErrLost) || errors.Is(err, holdfast.ErrUnknown)
		if lost {
			l.excused[fmt.Sprint(n, mine)] = true
		} else if err == nil {
			l.got[n] = append(l.got[n], got)
		}
		l.mu.Unlock()
		if !lost {
			return err
		}
	}
}

// A part of all requests and replies is lost, doubled or late, and now and then a process is out of
// reach for longer than its lease. The work of each key is done once, except where its caller was told
// of a loss between its effect and its result. All callers have one result, that of the last time, and
// tokens grow.
func TestOncePerKey(t *testing.T) {
	keys := redistest.Count(t, 1000)
	play(t, func(t *testing.T, w *world.World, _, _ *world.Process) {
		l := &ledger{effects: map[int][]int64{}, got: map[int][]int64{}, excused: map[string]bool{}}
		var callers sync.WaitGroup
		for i, p := range append(w.Processes, w.Process()) {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			p.Each(func(world.Sending) redistest.Fault {
				l.mu.Lock()
				defer l.mu.Unlock()
				if random.IntN(6) > 0 {
					return redistest.Pass
				}
				l.lost++
				return anyFault(random)
			})
			for j := range 2 {
				own := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				callers.Go(func() {
					for n := range keys {
						if own.IntN(3) == 0 {
							p.Unplug(true)
							time.AfterFunc(time.Duration(own.IntN(6000))*time.Millisecond, func() { p.Unplug(false) })
						}
						if err := l.work(t.Context(), p.Once(name, once.Lease(holdfast.Renewed(2*time.Second))), n, own); err != nil {
							t.Errorf("key %d: %v", n, err)
						}
						p.Forget()
					}
				})
			}
		}
		callers.Wait()
		l.judge(t, keys)
	})
}

// judge is the oracle.
func (l *ledger) judge(t *testing.T, keys int) {
	l.mu.Lock() // a clean-up may still be sent
	defer l.mu.Unlock()
	again := 0
	for n := range keys {
		tokens := l.effects[n]
		for i, token := range tokens[:max(0, len(tokens)-1)] {
			if again++; !l.excused[fmt.Sprint(n, token)] || token >= tokens[i+1] {
				t.Errorf("key %d: done again after %d, which nothing explains: %v", n, token, tokens)
			}
		}
		if results := slices.Compact(l.got[n]); len(results) != 1 || results[0] != tokens[len(tokens)-1] {
			t.Errorf("key %d: done by %v, and callers got %v", n, tokens, results)
		}
	}
	if t.Logf("%d keys, %d faults, %d done again, as explained", keys, l.lost, again); l.lost < keys/2 {
		t.Error("too little was lost")
	}
}
