// A failover forgets what was written last: what those kinds do then of which docs/when-servers-change.md says more
// than "as Mutex".

package faults

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/once"
)

// forgetful is a Redis that forgets, with two processes that use it.
type forgetful struct {
	t      *testing.T
	ctx    context.Context
	p, q   *holdfast.Client
	keep   func() // what has been written up to now is kept
	forget func() // all that was written since then is gone

	behind bool          // the server's clock was set back
	found  time.Duration // by then whoever holds something finds that Redis no longer has it
}

func (f *forgetful) must(errs ...error) {
	f.t.Helper()
	if err := errors.Join(errs...); err != nil {
		f.t.Fatal(err)
	}
}

func (f *forgetful) want(err, target error) {
	f.t.Helper()
	if !errors.Is(err, target) {
		f.t.Errorf("error %v, want %v", err, target)
	}
}

// counts fails the test unless a number is what it should be.
func (f *forgetful) counts(want int) func(int, error) {
	return func(n int, err error) {
		f.t.Helper()
		if err != nil || n != want {
			f.t.Errorf("it says %d, %v, want %d", n, err, want)
		}
	}
}

// wins fails the test unless a claim of a tick is won, or is not.
func (f *forgetful) wins(c *holdfast.Client, at time.Time, want bool) {
	f.t.Helper()
	if won, err := c.Tick(f.ctx, "tick", at, time.Minute); err != nil || won != want {
		f.t.Errorf("won: %t, %v, want %t", won, err, want)
	}
}

// grows fails the test unless a token is greater than the one before, or smaller if the clock was set back: an
// empty server has nothing else to go by.
func (f *forgetful) grows(before, after int64) {
	f.t.Helper()
	if (after > before) == f.behind {
		f.t.Errorf("token %d after %d, and the clock was set back: %t", after, before, f.behind)
	}
}

// ends fails the test unless what a channel carries comes within d.
func ends[T any](t *testing.T, what string, c <-chan T, d time.Duration) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(d):
		t.Fatalf("%s: not within %v", what, d)
	}
	return v
}

// A failover forgets what was written last. A planned one behind Sentinel does so each time.
func TestAFailoverForgetsWhatWasWrittenLast(t *testing.T) {
	for what, play := range map[string]func(f *forgetful){
		"an Acquire":           forgetsAnAcquire,
		"a Release":            forgetsARelease,
		"a TrySetCount":        forgetsASetCount,
		"a CountDown":          forgetsACountDown,
		"a result":             forgetsAResult,
		"work under way":       forgetsWork,
		"a tick":               forgetsATick,
		"a candidate":          forgetsACandidate,
		"a lead":               forgetsALead,
		"a release of several": forgetsAReleaseOfSeveral,
		"several at once":      forgetsSeveral,
	} {
		t.Run(what, func(t *testing.T) {
			onMasters(t, func(t *testing.T, m *masters, p, q *holdfast.Client) {
				keep, forget := func() { m.replicate(t) }, func() { m.failOver(t, p) }
				play(&forgetful{t: t, ctx: t.Context(), p: p, q: q, keep: keep, forget: forget, found: time.Millisecond})
			})
		})
	}
}

// A permit too many, for good.
func forgetsAnAcquire(f *forgetful) {
	s := f.p.Semaphore("s")
	f.must(second(s.TrySetPermits(f.ctx, 3)))
	f.keep()
	f.must(s.Acquire(f.ctx, 2))
	f.forget()
	f.counts(3)(s.Available(f.ctx))
	f.must(s.Release(f.ctx, 2))
	time.Sleep(25 * time.Hour) // what calls have counted is forgotten by then
	f.counts(5)(f.q.Semaphore("s").Available(f.ctx))
}

// A permit too few, for good.
func forgetsARelease(f *forgetful) {
	s := f.p.Semaphore("s")
	f.must(second(s.TrySetPermits(f.ctx, 3)), s.Acquire(f.ctx, 2))
	f.keep()
	f.must(s.Release(f.ctx, 2))
	f.forget()
	time.Sleep(25 * time.Hour)
	f.counts(1)(f.q.Semaphore("s").Available(f.ctx))
	f.must(s.Acquire(f.ctx, 1), s.Release(f.ctx, 1)) // each call counts once on the new master too
	f.counts(1)(f.q.Semaphore("s").Available(f.ctx))
}

// Who waits for a latch that the new master does not know goes on at once.
func forgetsASetCount(f *forgetful) {
	f.keep()
	f.must(second(f.p.Latch("l").TrySetCount(f.ctx, 2)))
	f.forget()
	ctx, cancel := context.WithTimeout(f.ctx, time.Second)
	defer cancel()
	f.must(f.q.Latch("l").Wait(ctx))
}

// The latch stays above zero until somebody counts once more.
func forgetsACountDown(f *forgetful) {
	l := f.p.Latch("l")
	f.must(second(l.TrySetCount(f.ctx, 2)))
	waits := make(chan error, 1)
	go func() { waits <- f.q.Latch("l").Wait(f.ctx) }()
	time.Sleep(time.Second)
	f.keep()
	f.must(second(l.CountDown(f.ctx)))
	f.forget()
	for left := range 2 {
		n, err := l.CountDown(f.ctx)
		f.counts(1-left)(int(n), err)
		synctest.Wait()
		if open := len(waits) > 0; open != (n == 0) {
			f.t.Errorf("%d are left, and the waiter has returned: %t", n, open)
		}
	}
	f.must(<-waits)
}

// The work is done again, and all that ask later get that result.
func forgetsAResult(f *forgetful) {
	runs, last := 0, int64(0)
	value := func(c *holdfast.Client) int64 {
		token, err := once.Value(f.ctx, c.Once("o"), "key", func(ctx context.Context) (int64, error) {
			runs++
			return once.Token(ctx), nil
		})
		f.must(err)
		return token
	}
	f.keep()
	last = value(f.p)
	f.forget()
	again := value(f.q)
	f.grows(last, again)
	if own := value(f.p); runs != 2 || own != again {
		f.t.Errorf("%d runs; the results are %d, %d, and %d for the process that had the first", runs, last, again, own)
	}
}

// The work ends soon; another begins before.
func forgetsWork(f *forgetful) {
	first, ended := make(chan int64, 1), make(chan error, 1)
	f.keep()
	go func() {
		_, _ = once.Value(f.ctx, f.p.Once("o"), "key", func(ctx context.Context) (int, error) {
			first <- once.Token(ctx)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return 0, ctx.Err()
		})
	}()
	synctest.Wait()
	f.forget()
	again, err := once.Value(f.ctx, f.q.Once("o"), "key", func(ctx context.Context) (int64, error) { return once.Token(ctx), nil })
	f.must(err)
	f.grows(<-first, again)
	f.want(ends(f.t, "the work", ended, f.found), holdfast.ErrLost)
}

func forgetsATick(f *forgetful) {
	at := time.Now()
	f.keep()
	f.wins(f.p, at, true)
	f.forget()
	f.wins(f.q, at, true)
	f.wins(f.p, at, false)
}

// A candidate that the new master does not know comes again, and leads next.
func forgetsACandidate(f *forgetful) {
	elect := func(c *holdfast.Client) *candidate { return campaign(f.ctx, c.Leader("l", leader.Identity("x"))) }
	leads := elect(f.p)
	first, err := leads.leads(f.ctx)
	f.must(err)
	f.keep()
	next := elect(f.q)
	time.Sleep(time.Second)
	f.forget()
	if all, err := leads.Candidates(f.ctx); err != nil || len(all) != 1 {
		f.t.Errorf("candidates %v, %v", all, err)
	}
	f.must(leads.retire())
	term := ends(f.t, "the next term", next.terms, 100*time.Millisecond)
	if term.Token() <= first.Token() {
		f.t.Errorf("token %d after %d", term.Token(), first.Token())
	}
	f.must(next.retire())
}

// A lead that the new master does not know ends soon: the leader asks every 1.25 s whether it leads.
func forgetsALead(f *forgetful) {
	f.keep()
	lost := campaign(f.ctx, f.p.Leader("l"))
	led, err := lost.leads(f.ctx)
	f.must(err)
	next := campaign(f.ctx, f.q.Leader("l"))
	synctest.Wait()
	f.forget()
	f.grows(led.Token(), ends(f.t, "the next term", next.terms, 1300*time.Millisecond).Token())
	f.want(ends(f.t, "the former term", lost.ended, min(f.found, 1300*time.Millisecond)), holdfast.ErrLost)
	f.must(lost.retire(), next.retire())
}

// two are locks that a process has as one.
func two(c *holdfast.Client) *holdfast.MultiLock {
	return holdfast.NewMultiLock(c.Mutex("a"), c.Mutex("b"))
}

// A release of several locks is repeated.
func forgetsAReleaseOfSeveral(f *forgetful) {
	l, err := two(f.p).Lock(f.ctx)
	f.must(err)
	f.keep()
	f.must(l.Release(f.ctx))
	f.forget()
	ctx, cancel := context.WithTimeout(f.ctx, 2*time.Second)
	defer cancel()
	f.must(second(two(f.q).Lock(ctx)))
}

// A grant of several locks ends soon; another has them before.
func forgetsSeveral(f *forgetful) {
	f.keep()
	held, err := two(f.p).Lock(f.ctx)
	f.must(err)
	f.forget()
	next, err := two(f.q).Lock(f.ctx)
	f.must(err)
	ends(f.t, "the former holder", held.Done(), f.found)
	f.want(held.Release(f.ctx), holdfast.ErrLost)
	f.must(next.Release(f.ctx))
}
