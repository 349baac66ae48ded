// This file plays orders of events that have broken other locks, one order in each test.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A context whose lease has ended never locks. It does not re-enter a hold that is over, and it
// does not lock as a new owner behind the caller's back.
func TestInterleaving_StaleLeaseContext(t *testing.T) {
	for _, tc := range []struct {
		how    string
		option holdfast.LeaseOption
		end    func(w *world, l *holdfast.Lease)
		cause  error
	}{
		{"released", nil, func(w *world, l *holdfast.Lease) { w.release(l) }, holdfast.ErrReleased},
		{"run out", holdfast.Fixed(time.Second), func(w *world, _ *holdfast.Lease) { w.at(time.Second) }, holdfast.ErrLost},
		{"held too long", holdfast.MaxHold(time.Second), func(w *world, _ *holdfast.Lease) { w.at(31 * time.Second) }, holdfast.ErrMaxHold},
		{"deleted", nil, func(w *world, _ *holdfast.Lease) { w.mini.Del(name); w.at(11 * time.Second) }, holdfast.ErrLost},
	} {
		t.Run(tc.how, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p, q := w.process(), w.process()
				m := p.Mutex(name, tc.option)
				l := w.lock(t.Context(), m)
				// The end of the lease does not cancel this context. It stands for a context that
				// was kept in a struct.
				stale := context.WithoutCancel(l.Context(t.Context()))
				tc.end(w, l)
				next := w.lock(t.Context(), q.mutex) // another process holds the lock now
				before, sent := w.mini.Snapshot(), p.runs("")
				for _, lock := range []func(context.Context) (*holdfast.Lease, error){m.Lock, m.TryLock} {
					_, err := lock(stale)
					wantErr(t, err, tc.cause)
				}
				if n := p.runs("") - sent; n != 0 {
					t.Errorf("%d requests", n)
				}
				if after := w.mini.Snapshot(); after != before {
					t.Errorf("before\n%s\nafter\n%s", before, after)
				}
				w.release(w.lock(stale, p.Mutex("another name")))
				w.release(next)
			})
		})
	}
}

// The context of a released inner lease does not lock, although the outer lease still holds the
// lock.
func TestInterleaving_StaleInnerLeaseContext(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		outer := w.lock(t.Context(), p.mutex)
		inner := w.lock(outer.Context(t.Context()), p.mutex)
		stale := context.WithoutCancel(inner.Context(t.Context()))
		w.release(inner)
		_, err := p.mutex.Lock(stale)
		wantErr(t, err, holdfast.ErrReleased)
		w.wantHolder(outer.Owner(), 1)
		w.release(outer)
	})
}

func TestInterleaving_FlushAllBetweenOuterAndNested(t *testing.T) {
	for how, lose := range gone {
		t.Run(how, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				outer := w.lock(t.Context(), p.mutex)
				ctx := outer.Context(t.Context())
				w.at(time.Second)
				lose(w)
				before := w.mini.Snapshot()
				_, err := p.mutex.Lock(context.WithoutCancel(ctx))
				wantErr(t, err, holdfast.ErrLost)
				wantEnd(t, ctx, holdfast.ErrLost) // and the outer lease knows of its loss
				if after := w.mini.Snapshot(); after != before {
					t.Errorf("before\n%s\nafter\n%s", before, after)
				}
				wantErr(t, outer.Release(t.Context()), holdfast.ErrLost)
				w.at(40 * time.Second)
			})
		})
	}
}

// A caller gives up an acquire, and the request reaches Redis after the clean-up has run. The next
// process gets the lock at the latest when the request arrives or at 1005 ms, whichever is later.
func TestInterleaving_AcquireExecutedAfterItsCleanUp(t *testing.T) {
	for _, tc := range []struct {
		what    string
		arrives time.Duration
		taken   bool // the late request takes the lock, until the clean-up comes again
	}{
		{"at once", 101 * time.Millisecond, true},
		{"before its not-after", 900 * time.Millisecond, true},
		{"after its not-after", 1100 * time.Millisecond, false},
		{"much later", 20 * time.Second, false},
	} {
		t.Run(tc.what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p, q := w.process(), w.process()
				arrive := make(chan struct{})
				p.on(lockRun, 1, redistest.HoldUntil(arrive))
				ctx, cancel := context.WithCancel(t.Context())
				a := w.goLock(ctx, p.mutex)
				w.at(100 * time.Millisecond)
				cancel()
				_, err := a.result()
				wantErr(t, err, context.Canceled)
				if at := w.now(); at != 100*time.Millisecond {
					t.Errorf("returned at %v, when it was cancelled at 100ms", at)
				}
				w.at(tc.arrives - time.Millisecond)
				if p.runs(releaseRun) == 0 {
					t.Error("no clean-up has run")
				}
				w.at(tc.arrives)
				close(arrive)
				synctest.Wait()
				if taken := len(w.holders(name)) > 0; taken != tc.taken {
					t.Errorf("taken %v by the late request, want %v", taken, tc.taken)
				}
				next := w.goLock(t.Context(), q.mutex)
				l, err := next.result()
				if err != nil {
					t.Fatal(err)
				}
				within(t, "free at", next.at, tc.arrives, max(tc.arrives, 1005*time.Millisecond))
				w.at(next.at + time.Minute)
				w.wantHolder(l.Owner(), 1) // no late clean-up touches this hold either
				w.release(l)
			})
		})
	}
}

// A waiter gives up at the instant at which a release grants it the lock. The next process gets the
// lock within 1010 ms of the release.
func TestInterleaving_WaiterGivesUpAsItIsGranted(t *testing.T) {
	for _, early := range []time.Duration{0, time.Millisecond, -time.Millisecond} {
		for how, fault := range map[string]redistest.Fault{
			"undisturbed": redistest.Pass,
			"reply held":  redistest.HoldReply(nil),
			"slow":        redistest.Delay(2 * time.Millisecond),
			"reply lost":  redistest.Silence,
		} {
			t.Run(fmt.Sprint(how, " ", early), func(t *testing.T) {
				play(t, func(t *testing.T, w *world) {
					p, q, r := w.process(), w.process(), w.process()
					held := w.lock(t.Context(), p.mutex)
					ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond+early)
					defer cancel()
					a := w.goLock(ctx, q.mutex)
					time.Sleep(500*time.Millisecond - w.now()) // no Wait: all at the same instant
					q.on(lockRun, 1, fault)
					w.release(held)
					l, err := a.result()
					if err == nil {
						w.release(l)
					} else {
						wantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
					}
					next := w.goLock(t.Context(), r.mutex)
					l, err = next.result()
					if err != nil {
						t.Fatal(err)
					}
					within(t, "free at", next.at, 500*time.Millisecond, 1510*time.Millisecond)
					w.at(3 * time.Second)
					w.wantHolder(l.Owner(), 1)
					w.release(l)
				})
			})
		}
	}
}

// An acquire is sent twice. The first sending reaches Redis after the hold of the second sending
// has ended. It would take the lock for nobody, so the lock must be free soon after it.
func TestInterleaving_FirstSendingArrivesAfterTheHoldHasEnded(t *testing.T) {
	for how, end := range map[string]func(w *world, p *process, l *holdfast.Lease){
		"released": func(w *world, _ *process, l *holdfast.Lease) { w.release(l) },
		"run out":  func(*world, *process, *holdfast.Lease) {},
		"force released": func(w *world, p *process, _ *holdfast.Lease) {
			if _, err := p.mutex.ForceRelease(w.t.Context()); err != nil {
				w.t.Error(err)
			}
		},
		"flushed and found out": func(w *world, _ *process, l *holdfast.Lease) {
			w.mini.FlushAll()
			wantErr(w.t, l.Extend(w.t.Context(), time.Minute), holdfast.ErrLost)
		},
		"released in vain, then run out": func(w *world, p *process, l *holdfast.Lease) {
			p.each(func(s sending) redistest.Fault {
				if (s.script == freeRun || s.script == releaseRun) && s.at < 400*time.Millisecond {
					return redistest.DropBefore
				}
				return redistest.Pass
			})
			if err := l.Release(w.t.Context()); err == nil {
				w.t.Error("released")
			}
		},
	} {
		t.Run(how, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				w.release(w.lock(t.Context(), p.mutex)) // now the client knows the server's time
				arrive := make(chan struct{})
				p.on(lockRun, 1, redistest.HoldUntil(arrive))
				a := w.goLock(t.Context(), p.Mutex(name, holdfast.Fixed(300*time.Millisecond)))
				w.at(50 * time.Millisecond)
				p.hangUp() // the client gives up the connection; the request on it still arrives
				l, err := a.result()
				if err != nil {
					t.Fatal(err)
				}
				end(w, p, l)
				w.at(800 * time.Millisecond)
				w.wantFree()
				close(arrive)
				w.at(1020 * time.Millisecond)
				w.wantFree()
				w.at(5 * time.Second)
			})
		})
	}
}

// A renewal that arrives after the local loss prolongs nothing.
func TestInterleaving_RenewalExecutedAfterTheLocalLoss(t *testing.T) {
	for what, prolong := range map[string]func(p *process, l *holdfast.Lease) error{
		"renewal": nil,
		"extension": func(_ *process, l *holdfast.Lease) error {
			return l.Extend(context.Background(), 90*time.Second)
		},
		"nested lock": func(p *process, l *holdfast.Lease) error {
			_, err := p.Mutex(name, holdfast.Renewed(90*time.Second)).Lock(context.WithoutCancel(l.Context(context.Background())))
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				arrive := make(chan struct{})
				p.each(func(s sending) redistest.Fault {
					if s.script == renewRun || s.script == recountRun {
						return redistest.HoldUntil(arrive)
					}
					return redistest.Pass
				})
				l := w.lock(t.Context(), p.mutex)
				ctx := l.Context(t.Context())
				w.at(29_500 * time.Millisecond)
				var a *attempt
				if prolong != nil {
					a = w.try(func() (*holdfast.Lease, error) { return nil, prolong(p, l) })
				}
				<-ctx.Done()
				wantEnd(t, ctx, holdfast.ErrLost)
				within(t, "lost at", w.now(), 29_600*time.Millisecond, 29_700*time.Millisecond)
				w.at(29_800 * time.Millisecond)
				close(arrive)
				w.at(29_900 * time.Millisecond)
				w.wantTTL(100 * time.Millisecond)
				w.at(30 * time.Second)
				w.wantFree()
				if a != nil {
					_, err := a.result()
					wantErr(t, err, holdfast.ErrLost)
				}
				w.at(150 * time.Second)
			})
		})
	}
}

// A process detaches while its renewal is on its way. The renewal reaches Redis after another
// process has attached, or between Detach and Attach, and does no harm.
func TestInterleaving_DetachAndAttachWhileTheFirstRenews(t *testing.T) {
	for what, attachFirst := range map[string]bool{"after Attach": true, "between Detach and Attach": false} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p, q := w.process(), w.process()
				l := w.lock(t.Context(), p.mutex)
				ctx := l.Context(t.Context())
				arrive := make(chan struct{})
				p.on(renewRun, 1, redistest.HoldUntil(arrive))
				w.at(10_100 * time.Millisecond)
				if p.runs(renewRun) != 1 {
					t.Fatal("no renewal is on its way")
				}
				owner, err := l.Detach(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				wantEnd(t, ctx, holdfast.ErrReleased)
				w.wantHolder(owner, 1)
				if !attachFirst {
					close(arrive)
				}
				w.at(10_500 * time.Millisecond)
				parsed, err := holdfast.ParseOwner(owner.String())
				if err != nil {
					t.Fatal(err)
				}
				taken, err := q.Mutex(name, holdfast.Renewed(45*time.Second)).Attach(t.Context(), parsed)
				if err != nil {
					t.Fatal(err)
				}
				if taken.Token() != l.Token() || taken.Owner() == owner {
					t.Errorf("token %d after %d, owner %v after %v", taken.Token(), l.Token(), taken.Owner(), owner)
				}
				w.wantTTL(45 * time.Second)
				if attachFirst {
					close(arrive)
				}
				w.at(11 * time.Second)
				w.wantHolder(taken.Owner(), 1)
				w.wantTTL(44_500 * time.Millisecond)

				_, err = p.mutex.Attach(t.Context(), owner) // only once for each owner
				wantErr(t, err, holdfast.ErrLost)
				w.at(2 * time.Minute)
				renewals := p.runs(renewRun)
				if taken.Err() != nil {
					t.Error(taken.Err())
				}
				w.at(3 * time.Minute)
				if n := p.runs(renewRun) - renewals; n != 0 {
					t.Errorf("the one that detached renewed %d times", n)
				}
				w.release(taken)
			})
		})
	}
}

// Two processes attach to the same owner at once, and exactly one of them gets the hold.
func TestInterleaving_TwoAttach(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q, r := w.process(), w.process(), w.process()
		owner, err := w.lock(t.Context(), p.mutex).Detach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []*holdfast.Lease
		for _, each := range []*process{q, r} {
			each.on(moveRun, 1, redistest.CloseAfterExec) // each process sends it twice
		}
		a := w.try(func() (*holdfast.Lease, error) { return q.mutex.Attach(t.Context(), owner) })
		b := w.try(func() (*holdfast.Lease, error) { return r.mutex.Attach(t.Context(), owner) })
		for _, each := range []*attempt{a, b} {
			if l, err := each.result(); err == nil {
				got = append(got, l)
			} else {
				wantErr(t, err, holdfast.ErrLost)
			}
		}
		if len(got) != 1 {
			t.Fatalf("%d have attached", len(got))
		}
		w.wantHolder(got[0].Owner(), 1)
		w.release(got[0])
	})
}

// An Attach whose caller gives up while the request is on its way leaves the hold for another
// Attach.
func TestInterleaving_AttachGivenUp(t *testing.T) {
	for what, arrives := range map[string]time.Duration{"executed": 0, "executed later": 500 * time.Millisecond, "too late": 2 * time.Second} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p, q := w.process(), w.process()
				owner, err := w.lock(t.Context(), p.mutex).Detach(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				arrive := make(chan struct{})
				fault := redistest.HoldUntil(arrive)
				if arrives == 0 {
					fault = redistest.HoldReply(arrive)
				}
				q.on(moveRun, 1, fault)
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_, err = q.mutex.Attach(ctx, owner)
				wantErr(t, err, context.DeadlineExceeded)
				w.at(max(arrives, 200*time.Millisecond))
				close(arrive)
				w.at(2500 * time.Millisecond)
				w.wantHolder(owner, 1)
				l, err := p.mutex.Attach(t.Context(), owner)
				if err != nil {
					t.Fatal(err)
				}
				w.release(l)
			})
		})
	}
}

// The holder's deadline is never later than the end that Redis knows, however often the acquire was
// sent and whenever it was answered.
func TestInterleaving_ResentAcquireAnsweredYours(t *testing.T) {
	for how, fault := range map[string]func(first bool) redistest.Fault{
		"the reply is lost": func(first bool) redistest.Fault {
			if first {
				return redistest.Silence
			}
			return redistest.Pass
		},
		"the first reply is lost, the second late": func(first bool) redistest.Fault {
			if first {
				return redistest.Silence
			}
			return redistest.HoldReply(after(800 * time.Millisecond))
		},
		"executed twice": func(bool) redistest.Fault { return redistest.Duplicate },
		"late": func(first bool) redistest.Fault {
			if first {
				return redistest.Delay(900 * time.Millisecond)
			}
			return redistest.Pass
		},
	} {
		for kind, option := range map[string]holdfast.LeaseOption{
			"fixed": holdfast.Fixed(10 * time.Second), "renewed": holdfast.Renewed(10 * time.Second),
		} {
			t.Run(how+", "+kind, func(t *testing.T) {
				play(t, func(t *testing.T, w *world) {
					p := w.process()
					w.release(w.lock(t.Context(), p.mutex))
					p.each(func(s sending) redistest.Fault {
						if s.script != lockRun {
							return redistest.Pass
						}
						return fault(s.n == 2)
					})
					l := w.lock(t.Context(), p.Mutex(name, option))
					synctest.Wait()
					end := w.now() + w.pttl(name)
					if deadline := l.Deadline().Sub(w.start); deadline > end-50*time.Millisecond {
						t.Errorf("deadline %v, and Redis ends it at %v", deadline, end)
					}
					w.wantHolder(l.Owner(), 1)
					w.release(l)
					w.at(5 * time.Second)
				})
			})
		}
	}
}

// after returns a channel that is closed when d has passed.
func after(d time.Duration) <-chan struct{} {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	_ = cancel // the timeout ends it
	return ctx.Done()
}

// A nested lock finds that the hold lasts longer than the nested lock asks for. Its deadline then
// follows the hold: it is between 700 ms and 50 ms before the end that Redis knows.
func TestInterleaving_NestedLockFindsALongerLife(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		outer := w.lock(t.Context(), p.mutex)
		if err := outer.Extend(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		w.at(5 * time.Second)
		p.on(recountRun, 1, redistest.Silence)
		inner := w.lock(outer.Context(t.Context()), p.mutex)
		end := w.now() + w.pttl(name)
		within(t, "deadline", inner.Deadline().Sub(w.start), end-700*time.Millisecond, end-50*time.Millisecond)
		w.release(inner)
		w.release(outer)
	})
}

// stepped sets the server's clock to d ahead of all other clocks.
func (w *world) stepped(d time.Duration) { w.mini.SetTime(time.Now().Add(d)) }

// step sets the server's clock to d ahead of all other clocks, and keeps it running, until the test
// calls the returned function.
func (w *world) step(d time.Duration) (stop func()) {
	done := make(chan struct{})
	var ticker sync.WaitGroup
	ticker.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			w.stepped(d)
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	synctest.Wait()
	return func() { close(done); ticker.Wait(); synctest.Wait() }
}

// The server's clock is set forwards or backwards. A hold that Redis still has goes on, tokens
// still grow, and calls and their not-afters still work.
func TestInterleaving_StepOfTheServersClock(t *testing.T) {
	for _, d := range []time.Duration{-time.Hour, -3 * time.Second, 500 * time.Millisecond, 15 * time.Second} {
		t.Run(d.String(), func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p, q := w.process(), w.process()
				l := w.lock(t.Context(), p.mutex)
				ctx := l.Context(t.Context())
				_, err := q.mutex.TryLock(t.Context()) // q knows the clock as it was
				wantErr(t, err, holdfast.ErrBusy)
				w.at(time.Second)
				stop := w.step(d)
				defer stop()
				w.at(60 * time.Second)
				wantEnd(t, ctx, nil)
				if ttl := w.pttl(name); ttl < 19*time.Second {
					t.Errorf("PTTL %v", ttl)
				}
				waiter := w.goLock(t.Context(), q.mutex)
				w.at(62 * time.Second)
				w.release(l)
				next, err := waiter.result()
				if err != nil {
					t.Fatal(err)
				}
				within(t, "in at", waiter.at, 62*time.Second, 62*time.Second+5*time.Millisecond)
				if next.Token() <= l.Token() {
					t.Errorf("token %d after %d", next.Token(), l.Token())
				}
				w.at(2 * time.Minute)
				if next.Err() != nil {
					t.Error(next.Err())
				}
				w.release(next)
				w.wantFree()
			})
		})
	}
}

// A step of the server's clock over the end of a lease frees the lock in Redis. The next holder
// gets a greater token, and the old holder is told at its next renewal.
func TestInterleaving_StepOverTheEndOfTheLease(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		l := w.lock(t.Context(), p.mutex)
		ctx := l.Context(t.Context())
		w.at(12 * time.Second)
		stop := w.step(time.Minute)
		defer stop()
		next := w.lock(t.Context(), q.mutex)
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
		<-ctx.Done()
		wantEnd(t, ctx, holdfast.ErrLost)
		within(t, "told at", w.now(), 19_900*time.Millisecond, 20_100*time.Millisecond)
		wantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		w.wantHolder(next.Owner(), 1)
		w.release(next)
	})
}

// The server's clock steps while a request is on its way. The caller has given up, and the request
// has a not-after that was computed from the old clock. The lock is free in the end.
func TestInterleaving_StepBeforeALateAcquire(t *testing.T) {
	for _, d := range []time.Duration{-5 * time.Second, 5 * time.Second} {
		t.Run(d.String(), func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				arrive := make(chan struct{})
				w.release(w.lock(t.Context(), p.mutex))
				p.on(lockRun, 1, redistest.HoldUntil(arrive))
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_, err := p.mutex.Lock(ctx)
				wantErr(t, err, context.DeadlineExceeded)
				w.at(200 * time.Millisecond)
				stop := w.step(d)
				defer stop()
				w.at(4 * time.Second) // past the not-after of the old clock only
				close(arrive)
				w.at(7 * time.Second)
				w.wantFree()
			})
		})
	}
}

// A nested lock is cancelled while its request is on its way. The request may still set the count
// in Redis, and the client then corrects the count.
func TestInterleaving_NestedLockCancelledInFlight(t *testing.T) {
	for what, fault := range map[string]func(ch chan struct{}) redistest.Fault{
		"executed, not answered": func(ch chan struct{}) redistest.Fault { return redistest.HoldReply(ch) },
		"executed later":         func(ch chan struct{}) redistest.Fault { return redistest.HoldUntil(ch) },
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				outer := w.lock(t.Context(), p.mutex)
				arrive := make(chan struct{})
				p.on(recountRun, 1, fault(arrive))
				ctx, cancel := context.WithTimeout(outer.Context(t.Context()), 100*time.Millisecond)
				defer cancel()
				_, err := p.mutex.Lock(ctx)
				wantErr(t, err, context.DeadlineExceeded)
				if errors.Is(err, holdfast.ErrBusy) {
					t.Errorf("%v", err)
				}
				w.at(500 * time.Millisecond)
				close(arrive)
				w.at(1010 * time.Millisecond)
				w.wantHolder(outer.Owner(), 1)
				if outer.Err() != nil {
					t.Error(outer.Err())
				}
				inner := w.lock(outer.Context(t.Context()), p.mutex)
				w.wantHolder(outer.Owner(), 2)
				w.release(inner)
				w.release(outer)
				w.wantFree()
			})
		})
	}
}

// The outer lease is released while a nested lock is on its way, and then the nested lock is
// cancelled. When Release returns nil and no lease is left, the lock is free.
func TestInterleaving_ReleaseWhileANestedLockIsCancelled(t *testing.T) {
	for what, fault := range map[string]func(ch chan struct{}) redistest.Fault{
		"executed, not answered": func(ch chan struct{}) redistest.Fault { return redistest.HoldReply(ch) },
		"executed later":         func(ch chan struct{}) redistest.Fault { return redistest.HoldUntil(ch) },
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p, q := w.process(), w.process()
				outer := w.lock(t.Context(), p.mutex)
				arrive := make(chan struct{})
				p.on(recountRun, 1, fault(arrive))
				ctx, cancel := context.WithCancel(context.WithoutCancel(outer.Context(t.Context())))
				nested := w.goLock(ctx, p.mutex)
				w.at(50 * time.Millisecond)
				freed := make(chan bool, 1)
				released := w.try(func() (*holdfast.Lease, error) {
					err := outer.Release(context.Background())
					freed <- !w.mini.Exists(name)
					return nil, err
				})
				w.at(100 * time.Millisecond)
				cancel()
				_, err := nested.result()
				wantErr(t, err, context.Canceled)
				if _, err := released.result(); err == nil && !<-freed {
					t.Error("Release has returned nil, and the lock is still held")
				}
				w.at(500 * time.Millisecond)
				close(arrive)
				w.at(1010 * time.Millisecond)
				w.wantFree()
				w.release(w.lock(t.Context(), q.mutex))
			})
		})
	}
}

// The outer lease is released while a nested lock is on its way, and then the nested lock is
// granted. The hold goes on.
func TestInterleaving_ReleaseWhileANestedLockIsGranted(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		outer := w.lock(t.Context(), p.mutex)
		arrive := make(chan struct{})
		p.on(recountRun, 1, redistest.HoldUntil(arrive))
		nested := w.goLock(context.WithoutCancel(outer.Context(t.Context())), p.mutex)
		w.at(50 * time.Millisecond)
		released := w.try(func() (*holdfast.Lease, error) { return nil, outer.Release(context.Background()) })
		w.at(100 * time.Millisecond)
		close(arrive)
		inner, err := nested.result()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := released.result(); err != nil {
			t.Error(err)
		}
		w.wantHolder(inner.Owner(), 1)
		w.at(time.Minute)
		if inner.Err() != nil {
			t.Error(inner.Err())
		}
		w.release(inner)
		w.wantFree()
	})
}

// A nested lock waits until another nested lock is done. Before its turn comes, the lease that its
// context carries is released, so the waiting lock fails with ErrReleased.
func TestInterleaving_ReleaseWhileANestedLockWaitsForItsTurn(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		outer := w.lock(t.Context(), p.mutex)
		ctx := context.WithoutCancel(outer.Context(t.Context()))
		arrive := make(chan struct{})
		p.on(recountRun, 1, redistest.HoldUntil(arrive))
		first := w.goLock(ctx, p.mutex)
		w.at(50 * time.Millisecond)
		second := w.goLock(ctx, p.mutex)
		w.at(100 * time.Millisecond)
		released := w.try(func() (*holdfast.Lease, error) { return nil, outer.Release(context.Background()) })
		w.at(150 * time.Millisecond)
		close(arrive)
		inner, err := first.result()
		if err != nil {
			t.Fatal(err)
		}
		if l, err := second.result(); l != nil {
			t.Error("entered through a lease that has been released")
		} else {
			wantErr(t, err, holdfast.ErrReleased)
		}
		if _, err := released.result(); err != nil {
			t.Error(err)
		}
		w.wantHolder(inner.Owner(), 1)
		w.release(inner)
		w.wantFree()
	})
}

// A nested lock is sent twice. Its first sending reaches Redis after the inner lease has been
// released, and the count stays right.
func TestInterleaving_FirstSendingOfANestedLockArrivesLate(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		outer := w.lock(t.Context(), p.mutex)
		arrive := make(chan struct{})
		p.on(recountRun, 1, redistest.HoldUntil(arrive))
		nested := w.goLock(outer.Context(t.Context()), p.mutex)
		w.at(50 * time.Millisecond)
		p.hangUp()
		inner, err := nested.result()
		if err != nil {
			t.Fatal(err)
		}
		w.release(inner)
		w.wantHolder(outer.Owner(), 1)
		w.at(500 * time.Millisecond)
		close(arrive)
		w.at(1100 * time.Millisecond)
		w.wantHolder(outer.Owner(), 1)
		w.release(outer)
		w.wantFree()
	})
}

// Many goroutines lock and release one hold, nested and over a slow network, and the count in Redis
// stays right.
func TestInterleaving_ConcurrentNestedLocksAndReleases(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		outer := w.lock(t.Context(), p.mutex)
		ctx := outer.Context(t.Context())
		p.each(func(s sending) redistest.Fault { return redistest.Delay(time.Duration(s.n%3) * time.Millisecond) })
		var workers sync.WaitGroup
		var mu sync.Mutex
		var kept []*holdfast.Lease
		for i := range 4 {
			workers.Go(func() {
				for j := range 10 {
					a, b := w.goLock(ctx, p.mutex), w.goLock(ctx, p.mutex)
					first, err := a.result()
					second, err2 := b.result()
					if err != nil || err2 != nil {
						t.Error(err, err2)
						return
					}
					if i == j { // some leases stay
						mu.Lock()
						kept = append(kept, second)
						mu.Unlock()
					} else {
						workers.Go(func() { w.release(second) })
					}
					w.release(first)
				}
			})
		}
		workers.Wait()
		w.wantHolder(outer.Owner(), 1+len(kept))
		for _, l := range slices.Backward(kept) {
			w.release(l)
		}
		w.wantHolder(outer.Owner(), 1)
		w.release(outer)
		w.wantFree()
	})
}

// The subscription breaks at the instant of a release, so the message of the release is lost. The
// waiter gets the lock at its next poll.
func TestInterleaving_GrantWhoseMessageWasLost(t *testing.T) {
	for how, lose := range map[string]func(q *process){
		"connection closed": func(q *process) { q.net.Cut() },
		"silence":           func(q *process) { q.net.BlackHole() },
	} {
		t.Run(how, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p, q := w.process(), w.process()
				held := w.lock(t.Context(), p.mutex)
				a := w.goLock(t.Context(), q.mutex)
				w.at(3 * time.Second)
				lose(q)
				w.release(held)
				l, err := a.result()
				if err != nil {
					t.Fatal(err)
				}
				// A silent connection costs its read timeout of 1 s in addition to the poll bound.
				within(t, "in at", a.at, 3*time.Second, 5350*time.Millisecond)
				w.release(l)
				q.net.Cut() // so the server learns that silent connections are dead
			})
		})
	}
}

// A grant whose answer comes after the lease has run out is no grant: another process may hold the
// lock by then.
func TestInterleaving_GrantAnsweredAfterItsLease(t *testing.T) {
	for kind, option := range map[string]holdfast.LeaseOption{
		"fixed": holdfast.Fixed(500 * time.Millisecond), "renewed": holdfast.Renewed(500 * time.Millisecond),
	} {
		t.Run(kind, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p, q := w.process(), w.process()
				w.release(w.lock(t.Context(), p.mutex))
				p.on(lockRun, 1, redistest.HoldReply(after(800*time.Millisecond)))
				a := w.goLock(t.Context(), p.Mutex(name, option))
				w.at(600 * time.Millisecond)
				next := w.lock(t.Context(), q.mutex)
				l, err := a.result()
				if l != nil {
					t.Errorf("at %v: granted until %v", w.now(), l.Deadline().Sub(w.start))
				}
				wantErr(t, err, holdfast.ErrLost)
				w.at(5 * time.Second)
				w.wantHolder(next.Owner(), 1)
				w.release(next)
			})
		})
	}
}
