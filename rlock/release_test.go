// This file is about Release under faults, and about Close.

package rlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// Release stops renewal before it sends anything.
func TestRelease_RenewalStopsFirst(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		w.At(9990 * time.Millisecond) // a renewal is due in less than 10 ms
		reach := make(chan struct{})
		p.On(world.FreeRun, 1, redistest.HoldUntil(reach))
		a := w.Try(func() (*holdfast.Lease, error) { return nil, l.Release(context.Background()) })
		w.At(10_500 * time.Millisecond)
		if !a.Pending() {
			t.Error("the release has returned without an answer")
		}
		if at := p.Times(world.RenewRun); len(at) != 0 {
			t.Errorf("renewed at %v, with the release under way", at)
		}
		close(reach)
		granted(t, a)
		w.At(time.Minute)
		if at := p.Times(world.RenewRun); len(at) != 0 {
			t.Errorf("renewed at %v, after the release", at)
		}
	})
}

// If Redis cannot be reached, Release returns an error within its limit of 5 s and goes on in the
// background. If Redis never is, the key goes when the rest of its lease is over: nothing is renewed.
func TestRelease_RedisOutOfReach(t *testing.T) {
	for how, fail := range map[string]func(p *world.Process){
		"refused": func(p *world.Process) { p.Unplug(true) },
		"silent":  func(p *world.Process) { p.Net.Refuse(true); p.Net.BlackHole() },
	} {
		for what, back := range map[string]time.Duration{"for 8 s": 19 * time.Second, "for ever": time.Hour} {
			play(t, how+", "+what, func(t *testing.T, w *world.World) {
				p := w.Process()
				l := w.Lock(t.Context(), p.MyLock)
				ctx := l.Context(t.Context())
				w.At(11 * time.Second) // the lease was renewed at 10 s
				fail(p)
				err := l.Release(t.Context())
				world.WantErr(t, err, context.DeadlineExceeded)
				if errors.Is(err, holdfast.ErrReleased) {
					t.Errorf("%v", err)
				}
				world.Within(t, "gave up at", w.Now(), 16*time.Second, 16*time.Second)
				world.WantEnd(t, ctx, holdfast.ErrReleased)
				world.WantErr(t, l.Release(t.Context()), holdfast.ErrReleased)
				w.At(19 * time.Second)
				w.WantHolder(l.Owner(), 1)
				if back < time.Minute {
					p.Net.Refuse(false)
					w.At(20_500 * time.Millisecond)
				} else {
					w.At(40 * time.Second)
				}
				w.WantFree()
				world.Equal(t, len(p.Times(world.RenewRun)), 1, "%d renewals")
			})
		}
	}
}

// If a release finds that others wait, the client sends a second release, which hands the lock
// over. The first release was sent twice, and this does not make the second one fail.
func TestRelease_ReplyLostAndAwaited(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		p.On(world.FreeRun, 1, redistest.Silence)
		released := w.Try(func() (*holdfast.Lease, error) { return nil, l.Release(context.Background()) })
		synctest.Wait()
		// The lock is released, and the client does not hear of it. Then another process takes the
		// lock and a third waits for it, before the release is sent again.
		other := w.Lock(t.Context(), q.MyLock)
		a := w.GoLock(t.Context(), w.Process().MyLock)
		synctest.Wait() // the waiter has its place
		granted(t, released)
		if p.Runs(world.ReleaseRun) == 0 {
			t.Error("it was not found that somebody waits")
		}
		w.WantHolder(other.Owner(), 1)
		w.Release(other)
		w.Release(granted(t, a))
	})
}

// Close ends leases and waits at once, and leaves the lock to expire, as work may go on under it. After
// that nothing works, and nothing is sent; the user's client is as it was.
func TestClose(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		rdb := p.Net.Client(t)
		own := holdfast.New(rdb)
		m := own.Mutex(world.Name)
		busy := w.Lock(t.Context(), q.Mutex("busy"))
		l := w.Lock(t.Context(), m)
		ctx := l.Context(t.Context())
		waits := []*world.Attempt{w.GoLock(t.Context(), own.Mutex("busy")), w.GoLock(t.Context(), own.Mutex("busy"))}
		w.At(2 * time.Second)

		var closers sync.WaitGroup
		for range 3 {
			closers.Go(func() { must(t, own.Close()) })
		}
		closers.Wait()
		world.Within(t, "closed by", w.Now(), 2*time.Second, 2*time.Second)
		sent := p.Runs("")
		for what, err := range map[string]error{
			"wait": second(waits[0].Result()), "another": second(waits[1].Result()), "cause": context.Cause(ctx), "Err": l.Err(),
			"Release": l.Release(t.Context()), "Lock": second(m.Lock(t.Context())), "TryLock": second(m.TryLock(t.Context())),
			"Attach": second(m.Attach(t.Context(), l.Owner())), "Remaining": func() error { _, err := m.Remaining(t.Context()); return err }(),
			"ForceRelease": func() error { _, err := m.ForceRelease(t.Context()); return err }(),
		} {
			if !errors.Is(err, holdfast.ErrClosed) || errors.Is(err, holdfast.ErrBusy) {
				t.Errorf("%s: %v, want ErrClosed", what, err)
			}
		}
		world.Equal(t, p.Runs("")-sent, 0, "%d requests")
		must(t, own.Close())
		must(t, rdb.Ping(t.Context()).Err())
		w.WantHolder(l.Owner(), 1)
		w.WantTTL(28 * time.Second)
		w.At(30 * time.Second)
		w.WantFree()
		w.Release(busy)
	})
}

// A Client that closes gives back what a Lock under way may have been granted.
func TestCloseWithALockUnderWay(t *testing.T) {
	for how, fault := range map[string]func(ch chan struct{}) redistest.Fault{
		"executed, not answered": func(ch chan struct{}) redistest.Fault { return redistest.HoldReply(ch) },
		"not executed yet":       func(ch chan struct{}) redistest.Fault { return redistest.HoldUntil(ch) },
	} {
		play(t, how, func(t *testing.T, w *world.World) {
			p := w.Process()
			w.Release(w.Lock(t.Context(), p.MyLock))
			arrive := make(chan struct{})
			p.On(world.LockRun, 1, fault(arrive))
			a := w.GoLock(t.Context(), p.MyLock)
			w.At(100 * time.Millisecond)
			closed := w.Try(func() (*holdfast.Lease, error) { return nil, p.Close() })
			w.At(200 * time.Millisecond)
			close(arrive)
			closed.Result()
			world.WantErr(t, second(a.Result()), holdfast.ErrClosed)
			world.Within(t, "closed by", w.Now(), 0, 1700*time.Millisecond)
			synctest.Wait()
			w.WantFree()
			w.At(40 * time.Second)
		})
	}
}

// A renewal is answered just after its hold was lost. The renewal has prolonged the hold in Redis
// by a whole lease, and nobody has that hold any more, so the client gives it up.
func TestRelease_RenewalAnsweredAfterTheLoss(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		// With this length, a renewal begins so late that its answer comes after the end of the lease.
		l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Renewed(29970*time.Millisecond)))
		end := time.Until(l.Deadline()) + w.Now()
		answered := make(chan struct{})
		p.Each(func(s world.Sending) redistest.Fault {
			switch {
			case s.Script != world.RenewRun:
				return redistest.Pass
			case s.At < end-50*time.Millisecond:
				return redistest.ReplyError("LOADING Redis is loading the dataset in memory")
			default:
				return redistest.HoldReply(answered)
			}
		})
		w.At(end + time.Millisecond)
		world.WantErr(t, l.Err(), holdfast.ErrLost)
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		w.WantHolder(l.Owner(), 1) // the hold has just been renewed
		close(answered)
		w.At(end + 100*time.Millisecond)
		w.WantFree()
	})
}

// What is given back as its Client closes is free at once, though Close may end the lease before that. In 20 tries it does.
func TestWhatIsGivenBackIsNotLeftByClose(t *testing.T) {
	for range 20 {
		world.Play(t, func(t *testing.T, w *world.World) {
			p := w.Process()
			l := w.Lock(t.Context(), p.MyLock)
			returned := (*hold.Lease)(l).GiveBack(t.Context())
			p.Close()
			<-returned
			if w.Mini.Exists(world.Name) {
				t.Error("it is still held")
			}
		})
	}
}
