// These tests show what callers see, on virtual time.

package semaphore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/test/enginetest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// pair is two processes at one Redis on virtual time: one behind a network, one near.
type pair struct {
	t    *testing.T
	mini *redistest.MiniServer
	net  *redistest.FaultProxy
	e    *engine.Engine // behind net
	near *engine.Engine // straight at the server
}

func play(t *testing.T, scene func(w *pair)) {
	redistest.Bubble(t, func(t *testing.T) {
		w := &pair{t: t, mini: redistest.Mini(t)}
		w.net = w.mini.Proxy()
		w.e, w.near = enginetest.New(t, w.net.Client(t)), enginetest.New(t, w.mini.Client())
		scene(w)
		w.net.OnCommand(nil)
		w.e.Close()
		w.near.Close()
	})
}

// on gives these faults to the next scripts.
func (w *pair) on(faults ...redistest.Fault) {
	var seen atomic.Int64
	w.net.OnCommand(func(c redistest.Command) redistest.Fault {
		if c.Name != "EVALSHA" && c.Name != "EVAL" {
			return redistest.Pass
		}
		if n := seen.Add(1); n <= int64(len(faults)) {
			return faults[n-1]
		}
		return redistest.Pass
	})
}

func (w *pair) ok(err error) {
	w.t.Helper()
	redistest.Must(w.t, err)
}

func (w *pair) is(err error, targets ...error) {
	w.t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			w.t.Errorf("error %v, want one that matches %q", err, target)
		}
	}
}

// takes fails the test unless a call takes so long.
func (w *pair) takes(want time.Duration, call func()) {
	w.t.Helper()
	began := time.Now()
	if call(); time.Since(began) != want {
		w.t.Errorf("it took %v, want %v", time.Since(began), want)
	}
}

// free fails the test unless exactly want permits are free.
func (w *pair) free(s interface {
	Available(context.Context) (int, error)
}, want int) {
	w.t.Helper()
	if n, err := s.Available(w.t.Context()); n != want || err != nil {
		w.t.Errorf("%d are free, %v; want %d", n, err, want)
	}
}

// set makes a semaphore of n permits, as the process behind the network sees it.
func (w *pair) set(n int) *Semaphore {
	w.t.Helper()
	set, err := New(w.near, "s", "s").TrySetPermits(w.t.Context(), n)
	if !set || err != nil {
		w.t.Fatal(set, err)
	}
	s := New(w.e, "s", "s")
	_, err = s.Available(w.t.Context())
	w.ok(err)
	w.ok(s.Acquire(w.t.Context(), 1)) // this loads its script
	w.ok(s.Release(w.t.Context(), 1))
	return s
}

// A cancelled Acquire takes nothing, whether its request ran, runs late, or never arrives.
func TestCancelledAcquireTakesNothing(t *testing.T) {
	for name, fault := range map[string]redistest.Fault{
		"the reply is lost":           redistest.Silence,
		"the request comes late":      redistest.Delay(500 * time.Millisecond),
		"the request comes very late": redistest.Delay(5 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *pair) {
				s := w.set(3)
				w.on(fault)
				ctx := redistest.Within(w.t, 100*time.Millisecond)
				w.takes(100*time.Millisecond, func() { w.is(s.Acquire(ctx, 2), context.DeadlineExceeded) })
				time.Sleep(10 * time.Second)
				w.free(s, 3)
			})
		})
	}
}

// A Release goes on when its context is cancelled. It goes on in the background when Redis cannot
// be reached.
func TestReleaseGoesOn(t *testing.T) {
	play(t, func(w *pair) {
		s := w.set(1)
		w.ok(s.Acquire(w.t.Context(), 1))
		cancelled, cancel := context.WithCancel(w.t.Context())
		cancel()
		w.ok(s.Release(cancelled, 1))
		w.free(s, 1)

		w.ok(s.Acquire(w.t.Context(), 1))
		w.net.Refuse(true)
		w.net.Cut()
		w.takes(5*time.Second, func() { w.is(s.Release(w.t.Context(), 1), errs.Unknown) })
		w.net.Refuse(false)
		time.Sleep(time.Second)
		w.free(s, 1)
	})
}

// The Client gives up a call in doubt before the server gives up the record of the call.
func TestDoubtIsGivenUp(t *testing.T) {
	play(t, func(w *pair) {
		s := w.set(1)
		w.net.OnCommand(func(c redistest.Command) redistest.Fault {
			if c.Name == "EVALSHA" {
				w.net.Refuse(true)
				return redistest.CloseAfterExec
			}
			return redistest.Pass
		})
		w.takes(5*time.Minute, func() { w.is(s.AddPermits(w.t.Context(), 1), errs.Unknown) })
		w.net.Refuse(false)
		w.net.OnCommand(nil)
		time.Sleep(time.Second)
		w.free(s, 2)
	})
}

func TestClosedClient(t *testing.T) {
	play(t, func(w *pair) {
		s := w.set(1)
		w.ok(s.Acquire(w.t.Context(), 1))
		waiting := make(chan error)
		go func() { waiting <- s.Acquire(w.t.Context(), 1) }()
		synctest.Wait()
		w.e.Close()
		w.is(<-waiting, errs.Closed)
		w.is(s.Acquire(w.t.Context(), 1), errs.Closed)
		err := s.Release(w.t.Context(), 1)
		w.is(err, errs.Closed)
		if errors.Is(err, errs.Unknown) {
			t.Errorf("nothing was sent, and yet: %v", err)
		}
	})
}

// A release of 1 wakes a waiter that needs 1, though a waiter that needs 5 has waited for longer.
func TestWeightsWake(t *testing.T) {
	play(t, func(w *pair) {
		s := w.set(10)
		w.ok(s.Acquire(w.t.Context(), 10))
		began := time.Now()
		got := make(chan int, 3)
		for _, n := range []int{5, 1} {
			go func() {
				if s.Acquire(w.t.Context(), n) == nil {
					got <- n
				}
			}()
			time.Sleep(10 * time.Millisecond)
		}
		w.ok(New(w.near, "s", "s").Release(w.t.Context(), 1))
		synctest.Wait()
		if n := <-got; n != 1 || time.Since(began) > 30*time.Millisecond {
			t.Errorf("%d was granted after %v", n, time.Since(began))
		}

		// Once the larger waiter has waited for a second, no other waiter of its process passes it.
		time.Sleep(1500 * time.Millisecond)
		go func() {
			if s.Acquire(w.t.Context(), 1) == nil {
				got <- 1
			}
		}()
		w.ok(New(w.near, "s", "s").Release(w.t.Context(), 4))
		time.Sleep(2 * time.Second)
		w.is(s.TryAcquire(w.t.Context(), 1), errs.Busy)
		for _, want := range []int{5, 1} { // one more is enough for the larger one, and another one for the other
			w.ok(New(w.near, "s", "s").Release(w.t.Context(), 1))
			redistest.Equal(t, <-got, want, "%d was granted, want %d", want)
		}
	})
}

func TestArguments(t *testing.T) {
	play(t, func(w *pair) {
		ctx := w.t.Context()
		s, p := New(w.e, "s", "s"), NewPermits(w.e, "p", "p", hold.Defaults())
		_, negative := s.TrySetPermits(ctx, -1)
		_, none := p.Acquire(ctx, 0)
		_, many := p.TryAcquire(ctx, 1001)
		_, short := NewPermits(w.e, "p", "p", hold.NewSettings([]lease.Option{lease.Fixed(0)})).Acquire(ctx, 1)
		_, name := New(w.e, "", "").Available(ctx)
		_, odd := p.Remaining(ctx, "xyz")
		for i, err := range []error{
			s.Acquire(ctx, -1), s.TryAcquire(ctx, -1), s.Release(ctx, -1), negative, none, many, short, name, odd,
			p.SetPermits(ctx, -1), p.ReleaseID(ctx, "00"), p.UpdateLease(ctx, "00112233445566778899aabbccddeeff", 0),
			New(engine.Broken(errs.BadArgument), "x", "x").Acquire(ctx, 1), NewPermits(engine.Broken(errs.BadArgument), "x", "x", hold.Settings{}).ReleaseID(ctx, "00112233445566778899aabbccddeeff"),
		} {
			if !errors.Is(err, errs.BadArgument) {
				t.Errorf("%d: %v", i, err)
			}
		}
		w.ok(s.Acquire(ctx, 0))
		w.ok(s.Release(ctx, 0))
		if keys := w.mini.Keys(); len(keys) > 0 {
			t.Errorf("left behind: %q", keys)
		}
	})
}

// An error of a PermitSemaphore names the method that was called.
func TestPermitsSayWhatWasTried(t *testing.T) {
	play(t, func(w *pair) {
		p := NewPermits(w.e, "p", "p", hold.Defaults())
		w.ok(p.SetPermits(w.t.Context(), 1))
		l, err := p.Acquire(w.t.Context(), 1)
		w.ok(err)
		_, err = p.TryAcquire(w.t.Context(), 1)
		w.is(err, errs.Busy)
		ctx := redistest.Within(w.t, time.Second)
		_, late := p.Acquire(ctx, 1)
		w.is(late, errs.Busy, context.DeadlineExceeded)
		for want, err := range map[string]error{`holdfast: try acquire permits "p": `: err, `holdfast: acquire permits "p": `: late} {
			if !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q, want %s...", err, want)
			}
		}
		w.ok(l.Release(w.t.Context()))
	})
}

// A permit that is released or shortened by its id is lost to its holder.
func TestByID(t *testing.T) {
	play(t, func(w *pair) {
		ctx := w.t.Context()
		p := NewPermits(w.e, "p", "p", hold.Defaults())
		w.ok(p.SetPermits(ctx, 2))
		l, err := p.Acquire(ctx, 2)
		w.ok(err)
		ids := p.IDs(l)
		w.ok(p.ReleaseID(ctx, ids[0]))
		w.is(p.ReleaseID(ctx, ids[0]), errs.NoPermits)
		_, err = p.Remaining(ctx, ids[0])
		w.is(err, errs.NoPermits)
		w.is(p.UpdateLease(ctx, ids[0], time.Second), errs.NoPermits)
		time.Sleep(11 * time.Second) // until after its next renewal
		w.is(l.Err(), errs.Lost)
		w.ok(p.UpdateLease(ctx, ids[1], time.Minute))
		if left, err := p.Remaining(ctx, ids[1]); left != time.Minute || err != nil {
			t.Errorf("%v left, %v", left, err)
		}
		if n, err := p.Acquired(ctx); n != 1 || err != nil {
			t.Errorf("%d are taken, %v", n, err)
		}
		time.Sleep(time.Minute)
		w.free(p, 2)
	})
}

// A release sends a message whatever number was free before. A waiter that waits for more than that
// number is in at once, and not only by its poll.
func TestAReleaseWakesWhoeverItIsEnoughFor(t *testing.T) {
	play(t, func(w *pair) {
		s := w.set(3)
		w.ok(s.Acquire(w.t.Context(), 2))
		granted := make(chan error)
		go func() { granted <- s.Acquire(w.t.Context(), 3) }()
		time.Sleep(100 * time.Millisecond)
		w.ok(New(w.near, "s", "s").Release(w.t.Context(), 2))
		w.takes(0, func() { w.ok(<-granted) })
	})
}

// Java's waiters hear, on the channel where they listen, how many permits are free.
func TestWhatIsGivenBackIsTold(t *testing.T) {
	play(t, func(w *pair) {
		rdb := w.mini.Client()
		messages := rdb.Subscribe(w.t.Context(), "redisson_sc:{s}", "redisson_sc:{p}")
		defer messages.Close()
		for range 2 {
			_, err := messages.Receive(w.t.Context())
			w.ok(err)
		}
		told := func(channel, payload string) {
			w.t.Helper()
			m, err := messages.ReceiveMessage(w.t.Context())
			w.ok(err)
			if m.Channel != channel || m.Payload != payload {
				w.t.Errorf("told %v, want %s on %s", m, payload, channel)
			}
		}
		s := New(w.near, "s", "s")
		_, err := s.TrySetPermits(w.t.Context(), 3)
		w.ok(err)
		told("redisson_sc:{s}", "3")
		w.ok(s.Acquire(w.t.Context(), 2))
		w.ok(s.Release(w.t.Context(), 2))
		told("redisson_sc:{s}", "3")

		p := NewPermits(w.near, "p", "p", hold.Defaults())
		w.ok(p.SetPermits(w.t.Context(), 2))
		told("redisson_sc:{p}", "2")
		l, err := p.Acquire(w.t.Context(), 1)
		w.ok(err)
		w.ok(l.Release(w.t.Context()))
		told("redisson_sc:{p}", "2")
		if n, err := p.Acquired(w.t.Context()); n != 0 || err != nil {
			w.t.Errorf("%d are taken, %v", n, err)
		}
	})
}

// A Release is refused for want of rights, be it after a sending that has counted. It goes on until an operator
// has given the rights, and counts once. Until then its caller cannot know.
func TestARefusedReleaseMayHaveCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		heard   int // how many sendings were answered before
		refused string
		as      error
	}{
		"after a sending that is not heard of":           {0, "NOPERM this user has no permissions", errs.Denied},
		"for good, after a sending that is not heard of": {0, "WRONGTYPE Operation against a key", errs.WrongType},
		"at once": {1, "NOPERM this user has no permissions", errs.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *pair) {
				s := w.set(3)
				w.ok(s.Acquire(w.t.Context(), 1))
				sent := tc.heard
				w.net.OnCommand(func(c redistest.Command) redistest.Fault {
					if c.Name != "EVALSHA" && c.Name != "EVAL" {
						return redistest.Pass
					}
					if sent++; sent == 1 {
						return redistest.CloseAfterExec
					}
					return redistest.ReplyError(tc.refused)
				})
				err := s.Release(w.t.Context(), 1)
				w.net.OnCommand(nil)
				w.is(err, tc.as)
				w.is(err, errs.Unknown)
				time.Sleep(2 * time.Second)
				w.free(s, 3)
			})
		})
	}
}

// Many releases at once go out in bundles. Where the key holds another type of value, each has the error
// that it has alone: the server has refused it, so nothing is in doubt.
func TestReleasesOfAWrongTypeAreNotInDoubt(t *testing.T) {
	play(t, func(w *pair) {
		w.mini.HSet("s", "a", "hash")
		s := New(w.e, "s", "s")
		w.is(s.Release(w.t.Context(), 1), errs.WrongType) // the Client is connected, and knows the clock
		before := w.net.Count("EVALSHA") + w.net.Count("EVAL")
		const n = 200
		failures := make([]error, n)
		var wg sync.WaitGroup
		for i := range failures {
			wg.Go(func() { failures[i] = s.Release(w.t.Context(), 1) })
		}
		wg.Wait()
		for i, err := range failures {
			w.is(err, errs.WrongType)
			if errors.Is(err, errs.Unknown) {
				t.Errorf("release %d: %v", i, err)
			}
		}
		if scripts := w.net.Count("EVALSHA") + w.net.Count("EVAL") - before; scripts == n {
			t.Error("no release went out in a bundle")
		}
	})
}

// A call in doubt counts once, even if the server's clock is set forward by hours before the call
// is sent again.
func TestACallInDoubtOutlivesAStepOfTheClock(t *testing.T) {
	play(t, func(w *pair) {
		s := w.set(3)
		w.ok(s.Acquire(w.t.Context(), 1))
		forward := make(chan struct{})
		w.on(redistest.CloseAfterExec, redistest.HoldUntil(forward))
		done := make(chan error, 1)
		go func() { done <- s.Release(w.t.Context(), 1) }()
		time.Sleep(100 * time.Millisecond)
		w.mini.FastForward(12 * time.Hour)
		close(forward)
		w.ok(<-done)
		w.net.OnCommand(nil)
		w.free(s, 3)
	})
}

// A request for more permits than there are in all is refused at once. If the permits become fewer,
// a waiter learns of it at its next poll.
func TestMoreThanThereAreInAll(t *testing.T) {
	play(t, func(w *pair) {
		ctx := redistest.Within(w.t, time.Minute)
		s := w.set(3)
		w.takes(0, func() { w.is(s.Acquire(ctx, 4), errs.NoPermits) })
		w.is(s.TryAcquire(ctx, 4), errs.NoPermits)
		w.free(s, 3)

		w.ok(s.AddPermits(ctx, 1))
		w.ok(s.Acquire(ctx, 4))
		done := make(chan error, 1)
		go func() { done <- s.Acquire(ctx, 4) }() // as many permits as there are: it waits
		time.Sleep(5 * time.Second)
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("it does not wait: %v", err)
		default:
		}
		w.ok(New(w.near, "s", "s").AddPermits(ctx, -1))
		time.Sleep(line.PollBound)
		select {
		case err := <-done:
			w.is(err, errs.NoPermits)
		default:
			t.Error("it waits for more than there are")
		}
		w.ok(s.Release(ctx, 4))
		w.free(s, 3)
	})
}

// When the number of permits in all is not known, a caller that asks for more than are free waits.
// The number is not known if a Java program has set the permits. It is also not known if there were
// no permits before, so that the released permits are new ones.
func TestInAllIsNotKnown(t *testing.T) {
	for what, set := range map[string]func(*pair, *Semaphore) error{
		"set by Java":   func(w *pair, _ *Semaphore) error { return w.mini.Set("s", "3") },
		"set to none":   func(w *pair, s *Semaphore) error { _, err := s.TrySetPermits(w.t.Context(), 0); return err },
		"released only": func(w *pair, s *Semaphore) error { return s.Release(w.t.Context(), 1) },
		"made anew by Java": func(w *pair, s *Semaphore) error {
			_, err := s.TrySetPermits(w.t.Context(), 1)
			w.mini.Del("s")
			return errors.Join(err, w.mini.Set("s", "4"))
		},
		"for a week unused": func(w *pair, s *Semaphore) error {
			_, err := s.TrySetPermits(w.t.Context(), 3)
			time.Sleep(7 * 24 * time.Hour)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(w *pair) {
				s, ctx := New(w.e, "s", "s"), w.t.Context()
				w.ok(set(w, s))
				w.is(s.TryAcquire(ctx, 5), errs.Busy)
				done := make(chan error, 1)
				go func() { done <- s.Acquire(ctx, 5) }()
				time.Sleep(3 * time.Second)
				w.ok(New(w.near, "s", "s").Release(ctx, 5))
				w.ok(<-done)
			})
		})
	}
}

// Permits are added where nobody knows how many there are: as many as are added are not all that there are.
func TestPermitsThatAreAddedAreNotAllThatThereAre(t *testing.T) {
	play(t, func(w *pair) {
		s, ctx := New(w.e, "s", "s"), w.t.Context()
		_, err := s.TrySetPermits(ctx, 0)
		w.ok(err)
		w.ok(s.Release(ctx, 3)) // new ones
		w.is(s.TryAcquire(ctx, 4), errs.Busy)
		w.ok(s.Acquire(ctx, 3))
		w.ok(s.AddPermits(ctx, 5))
		w.is(s.TryAcquire(ctx, 8), errs.Busy)
		w.ok(s.Release(ctx, 3))
		w.ok(s.TryAcquire(ctx, 8))
	})
}

// A semaphore that was never set says so, and callers can wait for it all the same.
func TestNeverSet(t *testing.T) {
	play(t, func(w *pair) {
		s, ctx := New(w.e, "s", "s"), w.t.Context()
		says := func(err error, targets ...error) {
			t.Helper()
			w.is(err, targets...)
			if err == nil || !strings.Contains(err.Error(), "never set") || errors.Is(err, errs.Busy) {
				t.Errorf("error %v", err)
			}
		}
		says(s.TryAcquire(ctx, 1), errs.NoPermits)
		short := redistest.Within(w.t, 3*time.Second)
		says(s.Acquire(short, 1), errs.NoPermits, context.DeadlineExceeded)
		done := make(chan error, 1)
		go func() { done <- s.Acquire(ctx, 1) }()
		time.Sleep(3 * time.Second)
		_, err := New(w.near, "s", "s").TrySetPermits(ctx, 1)
		w.ok(err)
		w.ok(<-done)

		p := NewPermits(w.e, "p", "p", hold.Defaults())
		_, err = p.TryAcquire(ctx, 1)
		says(err, errs.NoPermits)
		w.ok(p.SetPermits(ctx, 2))
		_, err = p.Acquire(ctx, 3)
		w.is(err, errs.NoPermits)
		if text := err.Error(); strings.Contains(text, "NOPERMITS") || !strings.Contains(text, "3 asked for, more than there are in all") {
			t.Errorf("error %v", err)
		}
	})
}

// A take that is undone late gives nothing to a semaphore that was made anew in the meantime.
func TestAnUndoneTakeGivesNothingToAnother(t *testing.T) {
	play(t, func(w *pair) {
		s := w.set(3)
		cut := false
		w.net.OnCommand(func(c redistest.Command) redistest.Fault {
			if c.Name != "EVALSHA" || cut {
				return redistest.Pass
			}
			cut = true
			w.net.Refuse(true)
			return redistest.CloseAfterExec
		})
		ctx := redistest.Within(w.t, 200*time.Millisecond)
		w.is(s.Acquire(ctx, 2), context.DeadlineExceeded)
		near := New(w.near, "s", "s")
		w.free(near, 1)
		w.mini.Del("s")
		if set, err := near.TrySetPermits(w.t.Context(), 3); !set || err != nil {
			t.Fatal(set, err)
		}
		w.net.Refuse(false)
		time.Sleep(10 * time.Second)
		w.free(near, 3)
		w.ok(near.Acquire(w.t.Context(), 3))
	})
}

// If callers give back more permits than were taken, the additional permits count from then on.
func TestMoreGivenBackThanTaken(t *testing.T) {
	play(t, func(w *pair) {
		s, ctx := w.set(3), w.t.Context()
		w.ok(s.Release(ctx, 2))
		w.ok(s.Acquire(ctx, 5))
		w.ok(s.Release(ctx, 5))
		w.is(s.TryAcquire(ctx, 6), errs.NoPermits)
	})
}
