// This file is about Release under faults, and about Close.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Release stops renewal before it sends anything.
func TestRelease_RenewalStopsFirst(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		w.at(9990 * time.Millisecond) // a renewal is due in less than 10 ms
		reach := make(chan struct{})
		p.on(freeRun, 1, redistest.HoldUntil(reach))
		a := w.try(func() (*holdfast.Lease, error) { return nil, l.Release(context.Background()) })
		w.at(10_500 * time.Millisecond)
		if !a.pending() {
			t.Error("the release has returned without an answer")
		}
		if at := p.times(renewRun); len(at) != 0 {
			t.Errorf("renewed at %v, with the release under way", at)
		}
		close(reach)
		if _, err := a.result(); err != nil {
			t.Error(err)
		}
		w.at(time.Minute)
		if at := p.times(renewRun); len(at) != 0 {
			t.Errorf("renewed at %v, after the release", at)
		}
	})
}

// If Redis cannot be reached, Release returns an error within its limit of 5 s and goes on in the
// background.
func TestRelease_RedisOutOfReach(t *testing.T) {
	for how, fail := range map[string]func(p *process){
		"refused": func(p *process) { p.unplug(true) },
		"silent":  func(p *process) { p.net.Refuse(true); p.net.BlackHole() },
	} {
		t.Run(how, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				l := w.lock(t.Context(), p.mutex)
				ctx := l.Context(t.Context())
				w.at(time.Second)
				fail(p)
				began := w.now()
				err := l.Release(t.Context())
				wantErr(t, err, context.DeadlineExceeded)
				if errors.Is(err, holdfast.ErrReleased) {
					t.Errorf("%v", err)
				}
				within(t, "gave up after", w.now()-began, 5*time.Second, 5*time.Second)
				wantEnd(t, ctx, holdfast.ErrReleased)
				wantErr(t, l.Release(t.Context()), holdfast.ErrReleased)
				w.at(8 * time.Second)
				w.wantHolder(l.Owner(), 1)
				p.net.Refuse(false)
				w.at(9500 * time.Millisecond)
				w.wantFree()
			})
		})
	}
}

// The key is gone when the rest of its lease is over, even if the process never reaches Redis
// again.
func TestRelease_NeverReached(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		w.at(12 * time.Second) // the lease was renewed at 10 s
		left := w.pttl(name)
		p.unplug(true)
		if err := l.Release(t.Context()); err == nil {
			t.Error("no error")
		}
		w.at(12*time.Second + left)
		w.wantFree()
		w.at(60 * time.Second)
		if n := len(p.times(renewRun)); n != 1 {
			t.Errorf("%d renewals", n)
		}
	})
}

// A Release goes on even if its context has ended.
func TestRelease_CancelledContext(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		ctx, cancel := context.WithCancel(t.Context())
		l := w.lock(ctx, p.mutex)
		cancel()
		if err := l.Release(ctx); err != nil {
			t.Error(err)
		}
		w.wantFree()
	})
}

// A release whose reply is lost is sent again, and the lock is released.
func TestRelease_ReplyLost(t *testing.T) {
	for how, fault := range map[string]redistest.Fault{
		"connection closed": redistest.CloseAfterExec,
		"half a reply":      redistest.HalfReply,
		"silence":           redistest.Silence,
		"never arrived":     redistest.DropBefore,
		"executed twice":    redistest.Duplicate,
		"loading":           redistest.ReplyError("LOADING Redis is loading the dataset in memory"),
	} {
		for _, run := range []string{freeRun, releaseRun} {
			t.Run(how+", "+run, func(t *testing.T) { releaseReplyLost(t, how, run, fault) })
		}
	}
}

func releaseReplyLost(t *testing.T, how, run string, fault redistest.Fault) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		if run == releaseRun {
			w.crowd(p, q)
		}
		l := w.lock(t.Context(), p.mutex)
		p.on(run, 1, fault)
		err := l.Release(t.Context())
		if how == "executed twice" {
			// The network delivers the request twice, and the client hears the second answer.
			wantErr(t, err, holdfast.ErrLost)
		} else if err != nil {
			t.Error(err)
		}
		if p.runs(run) == 0 {
			t.Errorf("no %s has run", run)
		}
		w.wantFree()
		w.release(w.lock(t.Context(), q.mutex))
	})
}

// If a release finds that others wait, the client sends a second release, which hands the lock
// over. The first release was sent twice, and this does not make the second one fail.
func TestRelease_ReplyLostAndAwaited(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		l := w.lock(t.Context(), p.mutex)
		p.on(freeRun, 1, redistest.Silence)
		released := w.try(func() (*holdfast.Lease, error) { return nil, l.Release(context.Background()) })
		synctest.Wait()
		// The lock is released, and the client does not hear of it. Then another process takes the
		// lock and a third waits for it, before the release is sent again.
		other := w.lock(t.Context(), q.mutex)
		a := w.goLock(t.Context(), w.process().mutex)
		synctest.Wait() // the waiter has its place
		if _, err := released.result(); err != nil {
			t.Error(err)
		}
		if p.runs(releaseRun) == 0 {
			t.Error("it was not found that somebody waits")
		}
		w.wantHolder(other.Owner(), 1)
		w.release(other)
		next, err := a.result()
		if err != nil {
			t.Fatal(err)
		}
		w.release(next)
	})
}

// A release whose reply was lost does not touch the owner that got the lock meanwhile.
func TestRelease_ReplyLostAndTakenByAnother(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		l := w.lock(t.Context(), p.mutex)
		a := w.goLock(t.Context(), q.mutex)
		w.at(500 * time.Millisecond)
		p.on(releaseRun, 1, redistest.Silence)
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		next, err := a.result()
		if err != nil {
			t.Fatal(err)
		}
		w.wantHolder(next.Owner(), 1)
		w.release(next)
	})
}

// An acquire whose reply is lost is sent again under the same owner.
func TestAcquireReplyLost(t *testing.T) {
	for how, fault := range map[string]redistest.Fault{
		"connection closed": redistest.CloseAfterExec,
		"half a reply":      redistest.HalfReply,
		"silence":           redistest.Silence,
		"never arrived":     redistest.DropBefore,
		"executed twice":    redistest.Duplicate,
	} {
		t.Run(how, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				p.on(lockRun, 1, fault)
				l, err := p.mutex.TryLock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				w.wantHolder(l.Owner(), 1)
				if token := w.rdb.Get(t.Context(), tokenKey).Val(); token != fmt.Sprint(l.Token()) {
					t.Errorf("token %d, in Redis %s", l.Token(), token)
				}
				w.release(l)
				w.wantFree()
				w.at(5 * time.Second)
			})
		})
	}
}

func TestClose(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		rdb := p.net.Client(t)
		own := holdfast.New(rdb)
		busy := w.lock(t.Context(), q.Mutex("busy"))
		l := w.lock(t.Context(), own.Mutex(name))
		ctx := l.Context(t.Context())
		waiter, second := w.goLock(t.Context(), own.Mutex("busy")), w.goLock(t.Context(), own.Mutex("busy"))
		w.at(2 * time.Second)

		var closers sync.WaitGroup
		for range 3 {
			closers.Go(func() {
				if err := own.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		closers.Wait()
		within(t, "closed by", w.now(), 2*time.Second, 2*time.Second)
		for _, a := range []*attempt{waiter, second} {
			_, err := a.result()
			wantErr(t, err, holdfast.ErrClosed)
			if errors.Is(err, holdfast.ErrBusy) {
				t.Errorf("%v", err)
			}
		}
		wantEnd(t, ctx, holdfast.ErrClosed)
		wantErr(t, l.Err(), holdfast.ErrClosed)
		wantErr(t, l.Release(t.Context()), holdfast.ErrClosed)
		if err := own.Close(); err != nil {
			t.Error(err)
		}
		if err := rdb.Ping(t.Context()).Err(); err != nil {
			t.Errorf("the user's client: %v", err)
		}
		// Work may go on under the lock, so Close leaves the lock to expire.
		w.wantHolder(l.Owner(), 1)
		w.wantTTL(28 * time.Second)
		w.at(30 * time.Second)
		w.wantFree()
		w.release(busy)
	})
}

func TestNothingWorksAfterClose(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		owner := l.Owner()
		w.release(l)
		p.Close()
		before := p.runs("")
		for what, call := range map[string]func() error{
			"Lock":         func() error { _, err := p.mutex.Lock(t.Context()); return err },
			"TryLock":      func() error { _, err := p.mutex.TryLock(t.Context()); return err },
			"Attach":       func() error { _, err := p.mutex.Attach(t.Context(), owner); return err },
			"Locked":       func() error { _, err := p.mutex.Locked(t.Context()); return err },
			"HeldBy":       func() error { _, err := p.mutex.HeldBy(t.Context(), owner); return err },
			"Remaining":    func() error { _, err := p.mutex.Remaining(t.Context()); return err },
			"ForceRelease": func() error { _, err := p.mutex.ForceRelease(t.Context()); return err },
		} {
			if err := call(); !errors.Is(err, holdfast.ErrClosed) {
				t.Errorf("%s: %v, want ErrClosed", what, err)
			}
		}
		if n := p.runs("") - before; n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestCloseWithoutUse(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		for range 2 {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// Close does not wait for Redis.
func TestCloseWithRedisOutOfReach(t *testing.T) {
	for how, fail := range map[string]func(p *process){
		"refused": func(p *process) { p.unplug(true) },
		"silent":  func(p *process) { p.net.BlackHole() },
	} {
		t.Run(how, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				l := w.lock(t.Context(), p.mutex)
				ctx := l.Context(t.Context())
				w.at(time.Second)
				fail(p)
				a := w.goLock(t.Context(), p.Mutex("another"))
				w.at(1500 * time.Millisecond)
				p.Close()
				within(t, "closed by", w.now(), 1500*time.Millisecond, 3*time.Second)
				_, err := a.result()
				wantErr(t, err, holdfast.ErrClosed)
				wantEnd(t, ctx, holdfast.ErrClosed)
				w.at(33 * time.Second)
				w.wantFree()
			})
		})
	}
}

// A Client that closes gives back what a Lock under way may have been granted.
func TestCloseWithALockUnderWay(t *testing.T) {
	for how, fault := range map[string]func(ch chan struct{}) redistest.Fault{
		"executed, not answered": func(ch chan struct{}) redistest.Fault { return redistest.HoldReply(ch) },
		"not executed yet":       func(ch chan struct{}) redistest.Fault { return redistest.HoldUntil(ch) },
	} {
		t.Run(how, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				w.release(w.lock(t.Context(), p.mutex))
				arrive := make(chan struct{})
				p.on(lockRun, 1, fault(arrive))
				a := w.goLock(t.Context(), p.mutex)
				w.at(100 * time.Millisecond)
				closed := w.try(func() (*holdfast.Lease, error) { return nil, p.Close() })
				w.at(200 * time.Millisecond)
				close(arrive)
				closed.result()
				_, err := a.result()
				wantErr(t, err, holdfast.ErrClosed)
				within(t, "closed by", w.now(), 0, 1700*time.Millisecond)
				synctest.Wait()
				w.wantFree()
				w.at(40 * time.Second)
			})
		})
	}
}

// Locks that are granted while the Client closes end with ErrClosed, at the
// latest when it has closed.
func TestCloseWhileLocking(t *testing.T) {
	for range redistest.Count(t, 100) {
		play(t, func(t *testing.T, w *world) {
			p := w.process()
			var lockers sync.WaitGroup
			for i := range 20 {
				lockers.Go(func() {
					l, err := p.Mutex(fmt.Sprint("lock", i)).Lock(t.Context())
					if err != nil {
						wantErr(t, err, holdfast.ErrClosed)
						return
					}
					<-l.Done()
					wantErr(t, l.Err(), holdfast.ErrClosed)
				})
			}
			p.Close()
			lockers.Wait()
			time.Sleep(40 * time.Second)
			synctest.Wait()
		})
	}
}

// A renewal is answered just after its hold was lost. The renewal has prolonged the hold in Redis
// by a whole lease, and nobody has that hold any more, so the client gives it up.
func TestRelease_RenewalAnsweredAfterTheLoss(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		// With this length, a renewal begins so late that its answer comes after the end of the
		// lease.
		l := w.lock(t.Context(), p.Mutex(name, holdfast.Renewed(29970*time.Millisecond)))
		end := time.Until(l.Deadline()) + w.now()
		answered := make(chan struct{})
		p.each(func(s sending) redistest.Fault {
			switch {
			case s.script != renewRun:
				return redistest.Pass
			case s.at < end-50*time.Millisecond:
				return redistest.ReplyError("LOADING Redis is loading the dataset in memory")
			default:
				return redistest.HoldReply(answered)
			}
		})
		w.at(end + time.Millisecond)
		wantErr(t, l.Err(), holdfast.ErrLost)
		wantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		w.wantHolder(l.Owner(), 1) // the hold has just been renewed
		close(answered)
		w.at(end + 100*time.Millisecond)
		w.wantFree()
	})
}
