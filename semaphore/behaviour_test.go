// These tests show what callers see, on virtual time.

package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// pair is a world of two processes. The first may have a bad network.
type pair struct {
	*world.World
	p, near *world.Process
}

func play(t *testing.T, scene func(w *pair)) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, near := w.Process(), w.Process()
		scene(&pair{w, p, near})
		p.Net.OnCommand(nil)
		p.Close()
		near.Close()
		w.RDB.FlushDB(t.Context()) // what counts calls stays for minutes
	})
}

// on gives these faults to the next scripts.
func (w *pair) on(faults ...redistest.Fault) {
	var seen atomic.Int64
	w.p.Net.OnCommand(func(c redistest.Command) redistest.Fault {
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
	w.T.Helper()
	redistest.Must(w.T, err)
}

func (w *pair) is(err error, targets ...error) {
	w.T.Helper()
	world.WantErr(w.T, err, targets...)
}

// takes fails the test unless a call takes so long.
func (w *pair) takes(want time.Duration, call func()) {
	w.T.Helper()
	began := time.Now()
	if call(); time.Since(began) != want {
		w.T.Errorf("it took %v, want %v", time.Since(began), want)
	}
}

// free fails the test unless exactly want permits are free.
func (w *pair) free(s interface {
	Available(context.Context) (int, error)
}, want int) {
	w.T.Helper()
	if n, err := s.Available(w.T.Context()); n != want || err != nil {
		w.T.Errorf("%d are free, %v; want %d", n, err, want)
	}
}

// set makes a semaphore of n permits, as the process behind the network sees it.
func (w *pair) set(n int) *holdfast.Semaphore {
	w.T.Helper()
	set, err := w.near.Semaphore("s").TrySetPermits(w.T.Context(), n)
	if !set || err != nil {
		w.T.Fatal(set, err)
	}
	s := w.p.Semaphore("s")
	w.ok(redistest.Err(s.Available(w.T.Context())))
	w.ok(s.Acquire(w.T.Context(), 1)) // this loads its script
	w.ok(s.Release(w.T.Context(), 1))
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
				ctx := redistest.Within(w.T, 100*time.Millisecond)
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
		w.ok(s.Acquire(w.T.Context(), 1))
		cancelled, cancel := context.WithCancel(w.T.Context())
		cancel()
		w.ok(s.Release(cancelled, 1))
		w.free(s, 1)

		w.ok(s.Acquire(w.T.Context(), 1))
		w.p.Net.Refuse(true)
		w.p.Net.Cut()
		w.takes(5*time.Second, func() { w.is(s.Release(w.T.Context(), 1), holdfast.ErrUnknown) })
		w.p.Net.Refuse(false)
		time.Sleep(time.Second)
		w.free(s, 1)
	})
}

// The Client gives up a call in doubt before the server gives up the record of the call.
func TestDoubtIsGivenUp(t *testing.T) {
	play(t, func(w *pair) {
		s := w.set(1)
		w.p.Net.OnCommand(func(c redistest.Command) redistest.Fault {
			if c.Name == "EVALSHA" {
				w.p.Net.Refuse(true)
				return redistest.CloseAfterExec
			}
			return redistest.Pass
		})
		w.takes(5*time.Minute, func() { w.is(s.AddPermits(w.T.Context(), 1), holdfast.ErrUnknown) })
		w.p.Net.Refuse(false)
		w.p.Net.OnCommand(nil)
		time.Sleep(time.Second)
		w.free(s, 2)
	})
}

func TestClosedClient(t *testing.T) {
	play(t, func(w *pair) {
		s := w.set(1)
		w.ok(s.Acquire(w.T.Context(), 1))
		waiting := make(chan error)
		go func() { waiting <- s.Acquire(w.T.Context(), 1) }()
		synctest.Wait()
		w.p.Close()
		w.is(<-waiting, holdfast.ErrClosed)
		w.is(s.Acquire(w.T.Context(), 1), holdfast.ErrClosed)
		err := s.Release(w.T.Context(), 1)
		w.is(err, holdfast.ErrClosed)
		if errors.Is(err, holdfast.ErrUnknown) {
			t.Errorf("nothing was sent, and yet: %v", err)
		}
	})
}

// A release of 1 wakes a waiter that needs 1, though a waiter that needs 5 has waited for longer.
func TestWeightsWake(t *testing.T) {
	play(t, func(w *pair) {
		s := w.set(10)
		w.ok(s.Acquire(w.T.Context(), 10))
		began := time.Now()
		got := make(chan int, 3)
		for _, n := range []int{5, 1} {
			go func() {
				if s.Acquire(w.T.Context(), n) == nil {
					got <- n
				}
			}()
			time.Sleep(10 * time.Millisecond)
		}
		w.ok(w.near.Semaphore("s").Release(w.T.Context(), 1))
		synctest.Wait()
		if n := <-got; n != 1 || time.Since(began) > 30*time.Millisecond {
			t.Errorf("%d was granted after %v", n, time.Since(began))
		}

		// Once the larger waiter has waited for a second, no other waiter of its process passes it.
		time.Sleep(1500 * time.Millisecond)
		go func() {
			if s.Acquire(w.T.Context(), 1) == nil {
				got <- 1
			}
		}()
		w.ok(w.near.Semaphore("s").Release(w.T.Context(), 4))
		time.Sleep(2 * time.Second)
		w.is(s.TryAcquire(w.T.Context(), 1), holdfast.ErrBusy)
		for _, want := range []int{5, 1} { // one more is enough for the larger one, and another one for the other
			w.ok(w.near.Semaphore("s").Release(w.T.Context(), 1))
			redistest.Equal(t, <-got, want, "%d was granted, want %d", want)
		}
	})
}

func TestArguments(t *testing.T) {
	const id = "00112233445566778899aabbccddeeff"
	play(t, func(w *pair) {
		ctx := w.T.Context()
		s, p, unusable := w.p.Semaphore("s"), w.p.PermitSemaphore("p"), holdfast.New(nil)
		for i, err := range []error{
			s.Acquire(ctx, -1), s.TryAcquire(ctx, -1), s.Release(ctx, -1), redistest.Err(s.TrySetPermits(ctx, -1)),
			redistest.Err(w.p.Semaphore("").Available(ctx)), unusable.Semaphore("s").Acquire(ctx, 1),
			redistest.Err(p.Acquire(ctx, 0)), redistest.Err(p.TryAcquire(ctx, 1001)), p.SetPermits(ctx, -1),
			redistest.Err(w.p.PermitSemaphore("p", holdfast.Fixed(0)).Acquire(ctx, 1)),
			redistest.Err(p.Remaining(ctx, "xyz")), p.ReleaseID(ctx, "00"), p.UpdateLease(ctx, id, 0),
			unusable.PermitSemaphore("p").ReleaseID(ctx, id),
		} {
			redistest.Is(t, fmt.Sprint(i), err, holdfast.ErrBadArgument)
		}
		w.ok(s.Acquire(ctx, 0))
		w.ok(s.Release(ctx, 0))
		if keys := w.Mini.Keys(); len(keys) > 0 {
			t.Errorf("left behind: %q", keys)
		}
	})
}

// An error of a PermitSemaphore names the method that was called.
func TestPermitsSayWhatWasTried(t *testing.T) {
	play(t, func(w *pair) {
		p, ctx := w.p.PermitSemaphore("p"), w.T.Context()
		w.ok(p.SetPermits(ctx, 1))
		l := w.Lock(ctx, p.Locker(1))
		for want, err := range map[string]error{
			`holdfast: try acquire permits "p": `: redistest.Err(p.TryAcquire(ctx, 1)),
			`holdfast: acquire permits "p": `:     redistest.Err(p.Acquire(redistest.Within(w.T, time.Second), 1)),
		} {
			if w.is(err, holdfast.ErrBusy); !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q, want %s...", err, want)
			}
		}
		w.Release(l)
	})
}

// A permit that is released or shortened by its id is lost to its holder.
func TestByID(t *testing.T) {
	play(t, func(w *pair) {
		ctx := w.T.Context()
		p := w.p.PermitSemaphore("p")
		w.ok(p.SetPermits(ctx, 2))
		l := w.Lock(ctx, p.Locker(2))
		ids := p.IDs(l)
		w.ok(p.ReleaseID(ctx, ids[0]))
		w.is(p.ReleaseID(ctx, ids[0]), holdfast.ErrNoPermits)
		w.is(redistest.Err(p.Remaining(ctx, ids[0])), holdfast.ErrNoPermits)
		w.is(p.UpdateLease(ctx, ids[0], time.Second), holdfast.ErrNoPermits)
		time.Sleep(11 * time.Second) // until after its next renewal
		w.is(l.Err(), holdfast.ErrLost)
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
		w.ok(s.Acquire(w.T.Context(), 2))
		granted := make(chan error)
		go func() { granted <- s.Acquire(w.T.Context(), 3) }()
		time.Sleep(100 * time.Millisecond)
		w.ok(w.near.Semaphore("s").Release(w.T.Context(), 2))
		w.takes(0, func() { w.ok(<-granted) })
	})
}

// Java's waiters hear, on the channel where they listen, how many permits are free.
func TestWhatIsGivenBackIsTold(t *testing.T) {
	play(t, func(w *pair) {
		ofS, ofP := w.Messages("redisson_sc:{s}"), w.Messages("redisson_sc:{p}")
		s, p, ctx := w.near.Semaphore("s"), w.near.PermitSemaphore("p"), w.T.Context()
		w.ok(redistest.Err(s.TrySetPermits(ctx, 3)))
		w.ok(s.Acquire(ctx, 2))
		w.ok(s.Release(ctx, 2))
		w.ok(p.SetPermits(ctx, 2))
		w.Release(w.Lock(ctx, p.Locker(1)))
		if s, p := ofS(), ofP(); !slices.Equal(s, []string{"0s 3", "0s 3"}) || !slices.Equal(p, []string{"0s 2", "0s 2"}) {
			t.Errorf("told %q and %q, want twice that 3, and that 2, are free", s, p)
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
		"after a sending that is not heard of":           {0, "NOPERM this user has no permissions", holdfast.ErrDenied},
		"for good, after a sending that is not heard of": {0, "WRONGTYPE Operation against a key", holdfast.ErrWrongType},
		"at once": {1, "NOPERM this user has no permissions", holdfast.ErrDenied},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *pair) {
				s := w.set(3)
				w.ok(s.Acquire(w.T.Context(), 1))
				sent := tc.heard
				w.p.Net.OnCommand(func(c redistest.Command) redistest.Fault {
					if c.Name != "EVALSHA" && c.Name != "EVAL" {
						return redistest.Pass
					}
					if sent++; sent == 1 {
						return redistest.CloseAfterExec
					}
					return redistest.ReplyError(tc.refused)
				})
				err := s.Release(w.T.Context(), 1)
				w.p.Net.OnCommand(nil)
				w.is(err, tc.as)
				w.is(err, holdfast.ErrUnknown)
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
		w.Mini.HSet("s", "a", "hash")
		s := w.p.Semaphore("s")
		w.is(s.Release(w.T.Context(), 1), holdfast.ErrWrongType) // the Client is connected, and knows the clock
		before := w.p.Net.Count("EVALSHA") + w.p.Net.Count("EVAL")
		const n = 200
		failures := make([]error, n)
		var wg sync.WaitGroup
		for i := range failures {
			wg.Go(func() { failures[i] = s.Release(w.T.Context(), 1) })
		}
		wg.Wait()
		for i, err := range failures {
			w.is(err, holdfast.ErrWrongType)
			if errors.Is(err, holdfast.ErrUnknown) {
				t.Errorf("release %d: %v", i, err)
			}
		}
		if scripts := w.p.Net.Count("EVALSHA") + w.p.Net.Count("EVAL") - before; scripts == n {
			t.Error("no release went out in a bundle")
		}
	})
}

// A call in doubt counts once, even if the server's clock is set forward by hours before the call
// is sent again.
func TestACallInDoubtOutlivesAStepOfTheClock(t *testing.T) {
	play(t, func(w *pair) {
		s := w.set(3)
		w.ok(s.Acquire(w.T.Context(), 1))
		forward := make(chan struct{})
		w.on(redistest.CloseAfterExec, redistest.HoldUntil(forward))
		done := make(chan error, 1)
		go func() { done <- s.Release(w.T.Context(), 1) }()
		time.Sleep(100 * time.Millisecond)
		w.Mini.FastForward(12 * time.Hour)
		close(forward)
		w.ok(<-done)
		w.p.Net.OnCommand(nil)
		w.free(s, 3)
	})
}

// A request for more permits than there are in all is refused at once. If the permits become fewer,
// a waiter learns of it at its next poll.
func TestMoreThanThereAreInAll(t *testing.T) {
	play(t, func(w *pair) {
		ctx := redistest.Within(w.T, time.Minute)
		s := w.set(3)
		w.takes(0, func() { w.is(s.Acquire(ctx, 4), holdfast.ErrNoPermits) })
		w.is(s.TryAcquire(ctx, 4), holdfast.ErrNoPermits)
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
		w.ok(w.near.Semaphore("s").AddPermits(ctx, -1))
		time.Sleep(line.PollBound)
		select {
		case err := <-done:
			w.is(err, holdfast.ErrNoPermits)
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
	for what, set := range map[string]func(*pair, *holdfast.Semaphore) error{
		"set by Java":   func(w *pair, _ *holdfast.Semaphore) error { return w.Mini.Set("s", "3") },
		"set to none":   func(w *pair, s *holdfast.Semaphore) error { return redistest.Err(s.TrySetPermits(w.T.Context(), 0)) },
		"released only": func(w *pair, s *holdfast.Semaphore) error { return s.Release(w.T.Context(), 1) },
		"made anew by Java": func(w *pair, s *holdfast.Semaphore) error {
			_, err := s.TrySetPermits(w.T.Context(), 1)
			w.Mini.Del("s")
			return errors.Join(err, w.Mini.Set("s", "4"))
		},
		"for a week unused": func(w *pair, s *holdfast.Semaphore) error {
			_, err := s.TrySetPermits(w.T.Context(), 3)
			time.Sleep(7 * 24 * time.Hour)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(w *pair) {
				s, ctx := w.p.Semaphore("s"), w.T.Context()
				w.ok(set(w, s))
				w.is(s.TryAcquire(ctx, 5), holdfast.ErrBusy)
				done := make(chan error, 1)
				go func() { done <- s.Acquire(ctx, 5) }()
				time.Sleep(3 * time.Second)
				w.ok(w.near.Semaphore("s").Release(ctx, 5))
				w.ok(<-done)
			})
		})
	}
}

// Permits are added where nobody knows how many there are: as many as are added are not all that there are.
func TestPermitsThatAreAddedAreNotAllThatThereAre(t *testing.T) {
	play(t, func(w *pair) {
		s, ctx := w.p.Semaphore("s"), w.T.Context()
		w.ok(redistest.Err(s.TrySetPermits(ctx, 0)))
		w.ok(s.Release(ctx, 3)) // new ones
		w.is(s.TryAcquire(ctx, 4), holdfast.ErrBusy)
		w.ok(s.Acquire(ctx, 3))
		w.ok(s.AddPermits(ctx, 5))
		w.is(s.TryAcquire(ctx, 8), holdfast.ErrBusy)
		w.ok(s.Release(ctx, 3))
		w.ok(s.TryAcquire(ctx, 8))
	})
}

// A semaphore that was never set says so, and callers can wait for it all the same.
func TestNeverSet(t *testing.T) {
	play(t, func(w *pair) {
		s, ctx := w.p.Semaphore("s"), w.T.Context()
		says := func(err error, targets ...error) {
			t.Helper()
			w.is(err, targets...)
			if err == nil || !strings.Contains(err.Error(), "never set") || errors.Is(err, holdfast.ErrBusy) {
				t.Errorf("error %v", err)
			}
		}
		says(s.TryAcquire(ctx, 1), holdfast.ErrNoPermits)
		short := redistest.Within(w.T, 3*time.Second)
		says(s.Acquire(short, 1), holdfast.ErrNoPermits, context.DeadlineExceeded)
		done := make(chan error, 1)
		go func() { done <- s.Acquire(ctx, 1) }()
		time.Sleep(3 * time.Second)
		w.ok(redistest.Err(w.near.Semaphore("s").TrySetPermits(ctx, 1)))
		w.ok(<-done)

		p := w.p.PermitSemaphore("p")
		says(redistest.Err(p.TryAcquire(ctx, 1)), holdfast.ErrNoPermits)
		w.ok(p.SetPermits(ctx, 2))
		err := redistest.Err(p.Acquire(ctx, 3))
		w.is(err, holdfast.ErrNoPermits)
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
		w.p.Net.OnCommand(func(c redistest.Command) redistest.Fault {
			if c.Name != "EVALSHA" || cut {
				return redistest.Pass
			}
			cut = true
			w.p.Net.Refuse(true)
			return redistest.CloseAfterExec
		})
		ctx := redistest.Within(w.T, 200*time.Millisecond)
		w.is(s.Acquire(ctx, 2), context.DeadlineExceeded)
		near := w.near.Semaphore("s")
		w.free(near, 1)
		w.Mini.Del("s")
		if set, err := near.TrySetPermits(w.T.Context(), 3); !set || err != nil {
			t.Fatal(set, err)
		}
		w.p.Net.Refuse(false)
		time.Sleep(10 * time.Second)
		w.free(near, 3)
		w.ok(near.Acquire(w.T.Context(), 3))
	})
}

// If callers give back more permits than were taken, the additional permits count from then on.
func TestMoreGivenBackThanTaken(t *testing.T) {
	play(t, func(w *pair) {
		s, ctx := w.set(3), w.T.Context()
		w.ok(s.Release(ctx, 2))
		w.ok(s.Acquire(ctx, 5))
		w.ok(s.Release(ctx, 5))
		w.is(s.TryAcquire(ctx, 6), holdfast.ErrNoPermits)
	})
}

// An acquisition is sent twice, and the first sending arrives last.
func TestALateAcquisitionDoesNotShortenALeaseThatWasExtended(t *testing.T) {
	play(t, func(w *pair) {
		s, ctx := w.p.PermitSemaphore("s", holdfast.Fixed(30*time.Second)), w.T.Context()
		w.ok(redistest.Err(s.TrySetPermits(ctx, 1)))
		w.Release(w.Lock(ctx, s.Locker(1))) // this loads its script
		begin := w.Now()
		w.on(redistest.Delay(500 * time.Millisecond))
		a := w.GoLock(ctx, s.Locker(1))
		synctest.Wait()
		w.p.HangUp() // the connection breaks; what was sent still arrives
		l, err := a.Result()
		w.ok(err)
		w.ok(l.Extend(ctx, 10*time.Minute))
		w.At(begin + 35*time.Second)
		other, err := w.near.PermitSemaphore("s").TryAcquire(ctx, 1)
		if err == nil {
			t.Errorf("two hold the only permit: the first has %v to go, Err %v", time.Until(l.Deadline()), l.Err())
			w.Release(other)
		}
		_ = l.Release(ctx)
	})
}
