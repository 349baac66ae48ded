// This file is about holders that are asked for their lock: Asked and Ask.

package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/rlock"
)

// asked reports whether the channel of Asked is closed.
func asked(l *holdfast.Lease) bool {
	select {
	case <-l.Asked():
		return true
	default:
		return false
	}
}

// askFor asks for the lock, and fails the test unless it is held or not, as wanted.
func askFor(w *world.World, p *world.Process, want bool) {
	w.T.Helper()
	if held, err := p.MyLock.Ask(w.T.Context()); held != want || err != nil {
		w.T.Errorf("held: %v (%v), want %v", held, err, want)
	}
}

// A holder is asked by whoever waits, here or elsewhere, and by Ask; at once if the message comes, and at the next poll
// if it does not.
func TestAsked(t *testing.T) {
	const at, poll = 24800 * time.Millisecond, 1250 * time.Millisecond
	for what, tc := range map[string]struct {
		muted  bool
		ask    func(w *world.World, p, q *world.Process)
		latest time.Duration
	}{
		"Ask":                     {false, func(w *world.World, _, q *world.Process) { askFor(w, q, true) }, 0},
		"Ask of its own process":  {false, func(w *world.World, p, _ *world.Process) { askFor(w, p, true) }, 0},
		"Ask, no message":         {true, func(w *world.World, _, q *world.Process) { askFor(w, q, true) }, poll},
		"a waiter":                {false, func(w *world.World, _, q *world.Process) { w.GoLock(w.T.Context(), q.MyLock) }, poll},
		"a waiter of its process": {false, func(w *world.World, p, _ *world.Process) { w.GoLock(w.T.Context(), p.MyLock) }, poll},
		"a try": {false, func(w *world.World, _, q *world.Process) {
			world.WantErr(w.T, second(q.MyLock.TryLock(w.T.Context())), holdfast.ErrBusy)
		}, -1},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			l := w.Lock(t.Context(), p.MyLock)
			ctx := l.Context(t.Context())
			if asked(l) {
				t.Error("asked at the beginning")
			}
			w.At(at)
			if tc.muted {
				p.Mute()
				defer p.Unmute()
			}
			tc.ask(w, p, q)
			if tc.latest < 0 {
				w.At(time.Minute)
				if asked(l) {
					t.Error("asked by nobody")
				}
			} else {
				ends(l.Asked())
				world.Within(t, "asked", w.Now(), at, at+tc.latest)
			}
			world.WantEnd(t, ctx, nil)
			w.Release(l)
		})
	}
}

// Who begins to listen later is asked too. The next holder is not, and an Ask of a lock that nobody holds asks nobody.
func TestAnAskConcernsTheHolder(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		askFor(w, q, false)
		l := w.Lock(t.Context(), p.MyLock)
		askFor(w, q, true)
		w.At(20 * time.Second)
		<-l.Asked()
		world.Within(t, "asked", w.Now(), 20*time.Second, 20*time.Second+10*time.Millisecond)
		w.Release(l)
		l = w.Lock(t.Context(), p.MyLock)
		l.Asked()
		w.At(40 * time.Second)
		if asked(l) {
			t.Error("the next holder is asked too")
		}
		w.Release(l)
	})
}

// The newest wins. The holder's work stops before the newest begins, even if messages or replies are lost.
func TestSupersede(t *testing.T) {
	const at, poll = 24800 * time.Millisecond, 1250 * time.Millisecond
	for what, tc := range map[string]struct {
		of     int    // the process of the newest: 0 is the holder's
		script string // its next run meets the fault, in both processes
		fault  redistest.Fault
		muted  bool
		latest time.Duration // until the holder knows
	}{
		"another process":  {of: 1},
		"the same process": {of: 0},
		"no message":       {of: 1, muted: true, latest: poll},
		"a lost request":   {1, world.ClaimRun, redistest.DropBefore, false, 5 * time.Second},
		"a lost reply":     {1, world.ClaimRun, redistest.CloseAfterExec, false, 5 * time.Second},
		"half a reply":     {1, world.ClaimRun, redistest.HalfReply, false, 5 * time.Second},
		"a lost grant":     {1, world.EnterRun, redistest.CloseAfterExec, false, 5 * time.Second},
		"a slow reply":     {1, world.ClaimRun, redistest.DelayReply(900 * time.Millisecond), false, 5 * time.Second},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Supersede()))
			ctx := l.Context(t.Context())
			w.At(at)
			if tc.muted {
				p.Mute()
				defer p.Unmute()
			}
			if tc.script != "" {
				p.On(tc.script, 1, tc.fault)
				q.On(tc.script, 1, tc.fault)
			}
			newest := w.GoLock(t.Context(), []*world.Process{p, q}[tc.of].Mutex(world.Name, holdfast.Supersede()))
			ends(ctx.Done())
			world.WantEnd(t, ctx, holdfast.ErrSuperseded)
			world.Within(t, "superseded", w.Now(), at, at+tc.latest)
			time.Sleep(time.Second)
			if !newest.Pending() {
				t.Error("the newest is granted before the holder has stopped")
			}
			world.WantErr(t, l.Release(t.Context()), holdfast.ErrSuperseded)
			next := granted(t, newest)
			if next.Token() <= l.Token() {
				t.Errorf("token %d after %d", next.Token(), l.Token())
			}
			time.Sleep(time.Minute)
			w.Release(next)
			w.WantFree()
		})
	}
}

// ends waits until a channel is closed, for ten minutes at most.
func ends(c <-chan struct{}) {
	select {
	case <-c:
	case <-time.After(10 * time.Minute):
	}
}

// A holder that does not stop has its grace, or else the rest of its lease. What AtLeast asks for stays.
func TestSupersede_AHolderThatDoesNotStop(t *testing.T) {
	for what, tc := range map[string]struct {
		options []holdfast.LeaseOption
		stays   time.Duration
		after   time.Duration // until the newest has the lock, at most
	}{
		"no grace": {nil, 0, 30 * time.Second},
		"a grace":  {[]holdfast.LeaseOption{holdfast.Grace(2 * time.Second)}, 0, 2 * time.Second},
		"AtLeast":  {[]holdfast.LeaseOption{holdfast.Grace(2 * time.Second)}, 25 * time.Second, 25 * time.Second},
		"fixed":    {[]holdfast.LeaseOption{holdfast.Fixed(40 * time.Second), holdfast.Grace(time.Second)}, 0, time.Second},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			l := w.Lock(t.Context(), p.Mutex(world.Name, append(tc.options, holdfast.Supersede())...))
			if tc.stays > 0 {
				must(t, l.AtLeast(t.Context(), tc.stays))
			}
			newest := w.GoLock(t.Context(), q.Mutex(world.Name, holdfast.Supersede()))
			<-l.Done()
			world.WantErr(t, l.Err(), holdfast.ErrSuperseded)
			next := granted(t, newest)
			world.Within(t, "granted", w.Now(), tc.after-time.Second, tc.after+2*time.Second)
			w.Release(next)
		})
	}
}

// Of those that wait, the newest gets the lock, and the others hear that they were superseded. One whose wait ends is
// not the newest any more. A holder without the option, a try, an Ask and a waiter without it supersede nobody.
func TestSupersede_Waiters(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q, r := w.Process(), w.Process(), w.Process()
		newest := []holdfast.LeaseOption{holdfast.Supersede()}
		plain := w.Lock(t.Context(), p.MyLock)
		held := plain.Context(t.Context())
		first := w.GoLock(t.Context(), p.Mutex(world.Name, newest...))
		w.At(time.Second)
		second := w.GoLock(t.Context(), q.Mutex(world.Name, newest...))
		w.At(2 * time.Second)
		gone, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		third := w.GoLock(gone, r.Mutex(world.Name, newest...))
		w.At(10 * time.Second)
		_, err := third.Result()
		world.WantErr(t, err, holdfast.ErrBusy)
		world.WantEnd(t, held, nil)
		w.Release(plain)
		world.WantErr(t, redistest.Err(first.Result()), holdfast.ErrSuperseded)
		l := granted(t, second)
		work := l.Context(t.Context())

		world.WantErr(t, redistest.Err(w.FarAway(400*time.Millisecond).Mutex(world.Name, newest...).TryLock(t.Context())), holdfast.ErrBusy)
		redistest.Check(t, redistest.Err(r.MyLock.Ask(t.Context())))
		waiter := w.GoLock(t.Context(), r.MyLock)
		w.At(time.Minute)
		world.WantEnd(t, work, nil)
		w.Release(l)
		w.Release(granted(t, waiter))
	})
}

// In these scenes something else is under way at the grant, or when a newer one comes. Then the next holder has the
// lock within the time that the scene says: the one before it is over, and has left nothing.
func TestSupersede_InBetween(t *testing.T) {
	newest := func(p *world.Process, more ...holdfast.LeaseOption) *rlock.Mutex {
		return p.Mutex(world.Name, append(more, holdfast.Supersede())...)
	}
	grace := holdfast.Grace(2 * time.Second)
	hold := func(w *world.World, p *world.Process, options ...holdfast.LeaseOption) *holdfast.Lease {
		l := w.Lock(w.T.Context(), newest(p, options...))
		w.At(2 * time.Second)
		return l
	}
	// extends asks for an Extend that gets through after 300 ms.
	extends := func(ctx context.Context, p *world.Process, l *holdfast.Lease) {
		p.On(world.RenewRun, 1, redistest.Delay(300*time.Millisecond))
		go l.Extend(ctx, time.Minute)
		time.Sleep(10 * time.Millisecond)
	}
	// late holds the lock, and asks for an Extend that gets through 50 s after the start, and then meets that fault.
	late := func(ctx context.Context, w *world.World, p *world.Process, then func() redistest.Fault) {
		l := hold(w, p, holdfast.Grace(70*time.Second), holdfast.Renewed(10*time.Minute))
		p.Each(func(s world.Sending) redistest.Fault {
			switch {
			case s.Script != world.RenewRun:
				return redistest.Pass
			case w.Now() < 50*time.Second:
				return redistest.DropBefore
			}
			return then()
		})
		go l.Extend(ctx, 20*time.Minute)
		time.Sleep(10 * time.Millisecond)
	}
	for what, tc := range map[string]struct {
		scene       func(t *testing.T, w *world.World, p *world.Process)
		least, most time.Duration // until the next holder has it
	}{
		"cut off after the grant": {func(t *testing.T, w *world.World, p *world.Process) {
			p.Each(func(s world.Sending) redistest.Fault {
				if s.Script == world.ClaimRun && s.N == 2 {
					go p.Unplug(true)
					return redistest.DropBefore
				}
				return redistest.Pass
			})
			first := w.GoLock(t.Context(), newest(p))
			w.At(time.Minute)
			p.Unplug(false)
			world.WantErr(t, second(first.Result()), holdfast.ErrLost)
		}, 0, time.Second},
		"closed after the grant": {func(t *testing.T, w *world.World, p *world.Process) {
			p.On(world.ClaimRun, 2, redistest.DelayReply(300*time.Millisecond))
			first := w.GoLock(t.Context(), newest(p))
			time.Sleep(50 * time.Millisecond)
			p.Close()
			world.WantErr(t, second(first.Result()), holdfast.ErrClosed)
		}, 0, 5 * time.Second},
		"released while a nested Lock is under way": {func(t *testing.T, w *world.World, p *world.Process) {
			l := hold(w, p)
			p.On(world.RecountRun, 1, redistest.DelayReply(900*time.Millisecond))
			w.GoLock(context.WithoutCancel(l.Context(t.Context())), newest(p))
			time.Sleep(10 * time.Millisecond)
			go l.Release(context.Background())
			time.Sleep(10 * time.Millisecond)
		}, 0, 5 * time.Second},
		"a renewal is under way": {func(t *testing.T, w *world.World, p *world.Process) {
			hold(w, p, grace)
			p.On(world.RenewRun, 1, redistest.Delay(200*time.Millisecond))
			for p.Runs(world.RenewRun) == 0 {
				time.Sleep(time.Millisecond)
			}
		}, time.Second, 4 * time.Second},
		"the answer to a renewal is lost": {func(t *testing.T, w *world.World, p *world.Process) {
			hold(w, p, holdfast.Grace(15*time.Second))
			p.Always(world.RenewRun, redistest.Delay(3*time.Second))
			for p.Runs(world.RenewRun) == 0 {
				time.Sleep(time.Millisecond)
			}
		}, 14 * time.Second, 17 * time.Second},
		"an Extend is under way": {func(t *testing.T, w *world.World, p *world.Process) {
			extends(context.Background(), p, hold(w, p, grace))
		}, time.Second, 4 * time.Second},
		"the holder has released before it knows": {func(t *testing.T, w *world.World, p *world.Process) {
			l := hold(w, p)
			p.Mute()
			next := w.GoLock(t.Context(), newest(p))
			time.Sleep(10 * time.Millisecond)
			w.Release(l)
			l = granted(t, next)
			w.At(10 * time.Second)
			world.WantErr(t, l.Err(), nil)
			p.Unmute()
			go func() {
				<-l.Done()
				_ = l.Release(context.Background())
			}()
		}, 0, 2 * time.Second},
		"the inner lease is released": {func(t *testing.T, w *world.World, p *world.Process) {
			l := hold(w, p)
			inner := w.Lock(l.Context(t.Context()), newest(p))
			go func() {
				<-l.Done()
				_ = inner.Release(context.Background())
				time.Sleep(10 * time.Second)
				_ = l.Release(context.Background())
			}()
		}, 10 * time.Second, 13 * time.Second},
		"an Extend is given up, and comes late": {func(t *testing.T, w *world.World, p *world.Process) {
			l := hold(w, p, grace)
			extends(redistest.Within(t, 100*time.Millisecond), p, l)
		}, time.Second, 13 * time.Second},
		"an Extend gets through long after": {func(t *testing.T, w *world.World, p *world.Process) {
			late(context.Background(), w, p, func() redistest.Fault { return redistest.Pass })
		}, 69 * time.Second, 72 * time.Second},
		"an Extend is given up long after, and comes late": {func(t *testing.T, w *world.World, p *world.Process) {
			ctx, cancel := context.WithCancel(context.Background())
			late(ctx, w, p, func() redistest.Fault {
				time.AfterFunc(100*time.Millisecond, cancel)
				return redistest.Delay(300 * time.Millisecond)
			})
		}, 69 * time.Second, 72 * time.Second},
		"Shutdown has begun, and an Extend is under way": {func(t *testing.T, w *world.World, p *world.Process) {
			other := w.Lock(t.Context(), p.Mutex("other"))
			time.AfterFunc(10*time.Second, func() { _ = other.Release(context.Background()) })
			l := hold(w, p, grace)
			go func() { _ = p.Shutdown(t.Context()) }()
			synctest.Wait()
			extends(context.Background(), p, l)
		}, time.Second, 4 * time.Second},
		"the inner lease alone has a grace": {func(t *testing.T, w *world.World, p *world.Process) {
			l := hold(w, p)
			w.Lock(l.Context(t.Context()), newest(p, grace))
		}, 20 * time.Second, 30 * time.Second},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			tc.scene(t, w, p)
			began := w.Now()
			next := w.Lock(t.Context(), newest(q))
			world.Within(t, "granted", w.Now()-began, tc.least, tc.most)
			time.Sleep(time.Minute)
			w.Release(next)
		})
	}
}

// What heeds a pause locks twice, and the second time would supersede who came in between.
func TestSupersede_DoesNotGoWithPausable(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Supersede()))
		err := holdfast.Do(t.Context(), q.Mutex(world.Name, holdfast.Supersede()), func(context.Context) error { return nil }, holdfast.Pausable())
		world.WantErr(t, err, holdfast.ErrBadArgument)
		w.At(10 * time.Second)
		w.Release(l)
	})
}

// Shutdown does not wait for what has given way and is released.
func TestSupersede_Shutdown(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		newest := []holdfast.LeaseOption{holdfast.Supersede(), holdfast.Grace(5 * time.Second)}
		l := w.Lock(t.Context(), p.Mutex(world.Name, newest...))
		p.On(world.RenewRun, 1, redistest.DelayReply(2*time.Second))
		for p.Runs(world.RenewRun) == 0 {
			time.Sleep(time.Millisecond)
		}
		next := w.GoLock(t.Context(), q.Mutex(world.Name, newest...))
		<-l.Done()
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrSuperseded)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		must(t, p.Shutdown(ctx))
		w.Release(granted(t, next))
	})
}
