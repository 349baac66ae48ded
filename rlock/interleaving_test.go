// This file plays orders of events that have broken other locks, one order in each test.

package rlock_test

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
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// A context whose lease has ended never locks. It does not re-enter a hold that is over, and it
// does not lock as a new owner behind the caller's back.
func TestInterleaving_StaleLeaseContext(t *testing.T) {
	for _, tc := range []struct {
		how    string
		option holdfast.LeaseOption
		end    func(w *world.World, l *holdfast.Lease)
		cause  error
	}{
		{"released", nil, func(w *world.World, l *holdfast.Lease) { w.Release(l) }, holdfast.ErrReleased},
		{"run out", holdfast.Fixed(time.Second), func(w *world.World, _ *holdfast.Lease) { w.At(time.Second) }, holdfast.ErrLost},
		{"held too long", holdfast.MaxHold(time.Second), func(w *world.World, _ *holdfast.Lease) { w.At(31 * time.Second) }, holdfast.ErrMaxHold},
		{"deleted", nil, func(w *world.World, _ *holdfast.Lease) { w.Mini.Del(world.Name); w.At(11 * time.Second) }, holdfast.ErrLost},
	} {
		t.Run(tc.how, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				m := p.Mutex(world.Name, tc.option)
				l := w.Lock(t.Context(), m)
				// The end of the lease does not cancel this context. It stands for a context that
				// was kept in a struct.
				stale := context.WithoutCancel(l.Context(t.Context()))
				tc.end(w, l)
				next := w.Lock(t.Context(), q.MyLock) // another process holds the lock now
				before, sent := w.Mini.Snapshot(), p.Runs("")
				for _, lock := range []func(context.Context) (*holdfast.Lease, error){m.Lock, m.TryLock} {
					_, err := lock(stale)
					world.WantErr(t, err, tc.cause)
				}
				if n := p.Runs("") - sent; n != 0 {
					t.Errorf("%d requests", n)
				}
				if after := w.Mini.Snapshot(); after != before {
					t.Errorf("before\n%s\nafter\n%s", before, after)
				}
				w.Release(w.Lock(stale, p.Mutex("another name")))
				w.Release(next)
			})
		})
	}
}

// The context of a released inner lease does not lock, although the outer lease still holds the
// lock.
func TestInterleaving_StaleInnerLeaseContext(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		outer := w.Lock(t.Context(), p.MyLock)
		inner := w.Lock(outer.Context(t.Context()), p.MyLock)
		stale := context.WithoutCancel(inner.Context(t.Context()))
		w.Release(inner)
		_, err := p.MyLock.Lock(stale)
		world.WantErr(t, err, holdfast.ErrReleased)
		w.WantHolder(outer.Owner(), 1)
		w.Release(outer)
	})
}

func TestInterleaving_FlushAllBetweenOuterAndNested(t *testing.T) {
	for how, lose := range gone {
		t.Run(how, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p := w.Process()
				outer := w.Lock(t.Context(), p.MyLock)
				ctx := outer.Context(t.Context())
				w.At(time.Second)
				lose(w)
				before := w.Mini.Snapshot()
				_, err := p.MyLock.Lock(context.WithoutCancel(ctx))
				world.WantErr(t, err, holdfast.ErrLost)
				world.WantEnd(t, ctx, holdfast.ErrLost) // and the outer lease knows of its loss
				if after := w.Mini.Snapshot(); after != before {
					t.Errorf("before\n%s\nafter\n%s", before, after)
				}
				world.WantErr(t, outer.Release(t.Context()), holdfast.ErrLost)
				w.At(40 * time.Second)
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
			world.Play(t, func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				arrive := make(chan struct{})
				p.On(world.LockRun, 1, redistest.HoldUntil(arrive))
				ctx, cancel := context.WithCancel(t.Context())
				a := w.GoLock(ctx, p.MyLock)
				w.At(100 * time.Millisecond)
				cancel()
				_, err := a.Result()
				world.WantErr(t, err, context.Canceled)
				if at := w.Now(); at != 100*time.Millisecond {
					t.Errorf("returned at %v, when it was cancelled at 100ms", at)
				}
				w.At(tc.arrives - time.Millisecond)
				if p.Runs(world.ReleaseRun) == 0 {
					t.Error("no clean-up has run")
				}
				w.At(tc.arrives)
				close(arrive)
				synctest.Wait()
				if taken := len(w.Holders(world.Name)) > 0; taken != tc.taken {
					t.Errorf("taken %v by the late request, want %v", taken, tc.taken)
				}
				next := w.GoLock(t.Context(), q.MyLock)
				l, err := next.Result()
				if err != nil {
					t.Fatal(err)
				}
				world.Within(t, "free at", next.At, tc.arrives, max(tc.arrives, 1005*time.Millisecond))
				w.At(next.At + time.Minute)
				w.WantHolder(l.Owner(), 1) // no late clean-up touches this hold either
				w.Release(l)
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
				world.Play(t, func(t *testing.T, w *world.World) {
					p, q, r := w.Process(), w.Process(), w.Process()
					held := w.Lock(t.Context(), p.MyLock)
					ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond+early)
					defer cancel()
					a := w.GoLock(ctx, q.MyLock)
					time.Sleep(500*time.Millisecond - w.Now()) // no Wait: all at the same instant
					q.On(world.LockRun, 1, fault)
					w.Release(held)
					l, err := a.Result()
					if err == nil {
						w.Release(l)
					} else {
						world.WantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
					}
					next := w.GoLock(t.Context(), r.MyLock)
					l, err = next.Result()
					if err != nil {
						t.Fatal(err)
					}
					world.Within(t, "free at", next.At, 500*time.Millisecond, 1510*time.Millisecond)
					w.At(3 * time.Second)
					w.WantHolder(l.Owner(), 1)
					w.Release(l)
				})
			})
		}
	}
}

// An acquire is sent twice. The first sending reaches Redis after the hold of the second sending
// has ended. It would take the lock for nobody, so the lock must be free soon after it.
func TestInterleaving_FirstSendingArrivesAfterTheHoldHasEnded(t *testing.T) {
	for how, end := range map[string]func(w *world.World, p *world.Process, l *holdfast.Lease){
		"released": func(w *world.World, _ *world.Process, l *holdfast.Lease) { w.Release(l) },
		"run out":  func(*world.World, *world.Process, *holdfast.Lease) {},
		"force released": func(w *world.World, p *world.Process, _ *holdfast.Lease) {
			if _, err := p.MyLock.ForceRelease(w.T.Context()); err != nil {
				w.T.Error(err)
			}
		},
		"flushed and found out": func(w *world.World, _ *world.Process, l *holdfast.Lease) {
			w.Mini.FlushAll()
			world.WantErr(w.T, l.Extend(w.T.Context(), time.Minute), holdfast.ErrLost)
		},
		"released in vain, then run out": func(w *world.World, p *world.Process, l *holdfast.Lease) {
			p.Each(func(s world.Sending) redistest.Fault {
				if (s.Script == world.FreeRun || s.Script == world.ReleaseRun) && s.At < 400*time.Millisecond {
					return redistest.DropBefore
				}
				return redistest.Pass
			})
			if err := l.Release(w.T.Context()); err == nil {
				w.T.Error("released")
			}
		},
	} {
		t.Run(how, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p := w.Process()
				w.Release(w.Lock(t.Context(), p.MyLock)) // now the client knows the server's time
				arrive := make(chan struct{})
				p.On(world.LockRun, 1, redistest.HoldUntil(arrive))
				a := w.GoLock(t.Context(), p.Mutex(world.Name, holdfast.Fixed(300*time.Millisecond)))
				w.At(50 * time.Millisecond)
				p.HangUp() // the client gives up the connection; the request on it still arrives
				l, err := a.Result()
				if err != nil {
					t.Fatal(err)
				}
				end(w, p, l)
				w.At(800 * time.Millisecond)
				w.WantFree()
				close(arrive)
				w.At(1020 * time.Millisecond)
				w.WantFree()
				w.At(5 * time.Second)
			})
		})
	}
}

// A renewal that arrives after the local loss prolongs nothing.
func TestInterleaving_RenewalExecutedAfterTheLocalLoss(t *testing.T) {
	for what, prolong := range map[string]func(p *world.Process, l *holdfast.Lease) error{
		"renewal": nil,
		"extension": func(_ *world.Process, l *holdfast.Lease) error {
			return l.Extend(context.Background(), 90*time.Second)
		},
		"nested lock": func(p *world.Process, l *holdfast.Lease) error {
			_, err := p.Mutex(world.Name, holdfast.Renewed(90*time.Second)).Lock(context.WithoutCancel(l.Context(context.Background())))
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p := w.Process()
				arrive := make(chan struct{})
				p.Each(func(s world.Sending) redistest.Fault {
					if s.Script == world.RenewRun || s.Script == world.RecountRun {
						return redistest.HoldUntil(arrive)
					}
					return redistest.Pass
				})
				l := w.Lock(t.Context(), p.MyLock)
				ctx := l.Context(t.Context())
				w.At(29_500 * time.Millisecond)
				var a *world.Attempt
				if prolong != nil {
					a = w.Try(func() (*holdfast.Lease, error) { return nil, prolong(p, l) })
				}
				<-ctx.Done()
				world.WantEnd(t, ctx, holdfast.ErrLost)
				world.Within(t, "lost at", w.Now(), 29_600*time.Millisecond, 29_700*time.Millisecond)
				w.At(29_800 * time.Millisecond)
				close(arrive)
				w.At(29_900 * time.Millisecond)
				w.WantTTL(100 * time.Millisecond)
				w.At(30 * time.Second)
				w.WantFree()
				if a != nil {
					_, err := a.Result()
					world.WantErr(t, err, holdfast.ErrLost)
				}
				w.At(150 * time.Second)
			})
		})
	}
}

// A process detaches while its renewal is on its way. The renewal reaches Redis after another
// process has attached, or between Detach and Attach, and does no harm.
func TestInterleaving_DetachAndAttachWhileTheFirstRenews(t *testing.T) {
	for what, attachFirst := range map[string]bool{"after Attach": true, "between Detach and Attach": false} {
		t.Run(what, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				l := w.Lock(t.Context(), p.MyLock)
				ctx := l.Context(t.Context())
				arrive := make(chan struct{})
				p.On(world.RenewRun, 1, redistest.HoldUntil(arrive))
				w.At(10_100 * time.Millisecond)
				if p.Runs(world.RenewRun) != 1 {
					t.Fatal("no renewal is on its way")
				}
				owner, err := l.Detach(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				world.WantEnd(t, ctx, holdfast.ErrReleased)
				w.WantHolder(owner, 1)
				if !attachFirst {
					close(arrive)
				}
				w.At(10_500 * time.Millisecond)
				parsed, err := holdfast.ParseOwner(owner.String())
				if err != nil {
					t.Fatal(err)
				}
				taken, err := q.Mutex(world.Name, holdfast.Renewed(45*time.Second)).Attach(t.Context(), parsed)
				if err != nil {
					t.Fatal(err)
				}
				if taken.Token() != l.Token() || taken.Owner() == owner {
					t.Errorf("token %d after %d, owner %v after %v", taken.Token(), l.Token(), taken.Owner(), owner)
				}
				w.WantTTL(45 * time.Second)
				if attachFirst {
					close(arrive)
				}
				w.At(11 * time.Second)
				w.WantHolder(taken.Owner(), 1)
				w.WantTTL(44_500 * time.Millisecond)

				_, err = p.MyLock.Attach(t.Context(), owner) // only once for each owner
				world.WantErr(t, err, holdfast.ErrLost)
				w.At(2 * time.Minute)
				renewals := p.Runs(world.RenewRun)
				if taken.Err() != nil {
					t.Error(taken.Err())
				}
				w.At(3 * time.Minute)
				if n := p.Runs(world.RenewRun) - renewals; n != 0 {
					t.Errorf("the one that detached renewed %d times", n)
				}
				w.Release(taken)
			})
		})
	}
}

// Two processes attach to the same owner at once, and exactly one of them gets the hold.
func TestInterleaving_TwoAttach(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q, r := w.Process(), w.Process(), w.Process()
		owner, err := w.Lock(t.Context(), p.MyLock).Detach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []*holdfast.Lease
		for _, each := range []*world.Process{q, r} {
			each.On(world.MoveRun, 1, redistest.CloseAfterExec) // each process sends it twice
		}
		a := w.Try(func() (*holdfast.Lease, error) { return q.MyLock.Attach(t.Context(), owner) })
		b := w.Try(func() (*holdfast.Lease, error) { return r.MyLock.Attach(t.Context(), owner) })
		for _, each := range []*world.Attempt{a, b} {
			if l, err := each.Result(); err == nil {
				got = append(got, l)
			} else {
				world.WantErr(t, err, holdfast.ErrLost)
			}
		}
		if len(got) != 1 {
			t.Fatalf("%d have attached", len(got))
		}
		w.WantHolder(got[0].Owner(), 1)
		w.Release(got[0])
	})
}

// An Attach whose caller gives up while the request is on its way leaves the hold for another
// Attach.
func TestInterleaving_AttachGivenUp(t *testing.T) {
	for what, arrives := range map[string]time.Duration{"executed": 0, "executed later": 500 * time.Millisecond, "too late": 2 * time.Second} {
		t.Run(what, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				owner, err := w.Lock(t.Context(), p.MyLock).Detach(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				arrive := make(chan struct{})
				fault := redistest.HoldUntil(arrive)
				if arrives == 0 {
					fault = redistest.HoldReply(arrive)
				}
				q.On(world.MoveRun, 1, fault)
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_, err = q.MyLock.Attach(ctx, owner)
				world.WantErr(t, err, context.DeadlineExceeded)
				w.At(max(arrives, 200*time.Millisecond))
				close(arrive)
				w.At(2500 * time.Millisecond)
				w.WantHolder(owner, 1)
				l, err := p.MyLock.Attach(t.Context(), owner)
				if err != nil {
					t.Fatal(err)
				}
				w.Release(l)
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
				world.Play(t, func(t *testing.T, w *world.World) {
					p := w.Process()
					w.Release(w.Lock(t.Context(), p.MyLock))
					p.Each(func(s world.Sending) redistest.Fault {
						if s.Script != world.LockRun {
							return redistest.Pass
						}
						return fault(s.N == 2)
					})
					l := w.Lock(t.Context(), p.Mutex(world.Name, option))
					synctest.Wait()
					end := w.Now() + w.PTTL(world.Name)
					if deadline := l.Deadline().Sub(w.Start); deadline > end-50*time.Millisecond {
						t.Errorf("deadline %v, and Redis ends it at %v", deadline, end)
					}
					w.WantHolder(l.Owner(), 1)
					w.Release(l)
					w.At(5 * time.Second)
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
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		outer := w.Lock(t.Context(), p.MyLock)
		if err := outer.Extend(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		w.At(5 * time.Second)
		p.On(world.RecountRun, 1, redistest.Silence)
		inner := w.Lock(outer.Context(t.Context()), p.MyLock)
		end := w.Now() + w.PTTL(world.Name)
		world.Within(t, "deadline", inner.Deadline().Sub(w.Start), end-700*time.Millisecond, end-50*time.Millisecond)
		w.Release(inner)
		w.Release(outer)
	})
}

// The server's clock is set forwards or backwards. A hold that Redis still has goes on, tokens
// still grow, and calls and their not-afters still work.
func TestInterleaving_StepOfTheServersClock(t *testing.T) {
	for _, d := range []time.Duration{-time.Hour, -3 * time.Second, 500 * time.Millisecond, 15 * time.Second} {
		t.Run(d.String(), func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				l := w.Lock(t.Context(), p.MyLock)
				ctx := l.Context(t.Context())
				_, err := q.MyLock.TryLock(t.Context()) // q knows the clock as it was
				world.WantErr(t, err, holdfast.ErrBusy)
				w.At(time.Second)
				stop := w.Step(d)
				defer stop()
				w.At(60 * time.Second)
				world.WantEnd(t, ctx, nil)
				if ttl := w.PTTL(world.Name); ttl < 19*time.Second {
					t.Errorf("PTTL %v", ttl)
				}
				waiter := w.GoLock(t.Context(), q.MyLock)
				w.At(62 * time.Second)
				w.Release(l)
				next, err := waiter.Result()
				if err != nil {
					t.Fatal(err)
				}
				world.Within(t, "in at", waiter.At, 62*time.Second, 62*time.Second+5*time.Millisecond)
				if next.Token() <= l.Token() {
					t.Errorf("token %d after %d", next.Token(), l.Token())
				}
				w.At(2 * time.Minute)
				if next.Err() != nil {
					t.Error(next.Err())
				}
				w.Release(next)
				w.WantFree()
			})
		})
	}
}

// A step of the server's clock over the end of a lease frees the lock in Redis. The next holder
// gets a greater token, and the old holder is told at its next renewal.
func TestInterleaving_StepOverTheEndOfTheLease(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		ctx := l.Context(t.Context())
		w.At(12 * time.Second)
		stop := w.Step(time.Minute)
		defer stop()
		next := w.Lock(t.Context(), q.MyLock)
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
		<-ctx.Done()
		world.WantEnd(t, ctx, holdfast.ErrLost)
		world.Within(t, "told at", w.Now(), 19_900*time.Millisecond, 20_100*time.Millisecond)
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		w.WantHolder(next.Owner(), 1)
		w.Release(next)
	})
}

// The server's clock steps while a request is on its way. The caller has given up, and the request
// has a not-after that was computed from the old clock. The lock is free in the end.
func TestInterleaving_StepBeforeALateAcquire(t *testing.T) {
	for _, d := range []time.Duration{-5 * time.Second, 5 * time.Second} {
		t.Run(d.String(), func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p := w.Process()
				arrive := make(chan struct{})
				w.Release(w.Lock(t.Context(), p.MyLock))
				p.On(world.LockRun, 1, redistest.HoldUntil(arrive))
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_, err := p.MyLock.Lock(ctx)
				world.WantErr(t, err, context.DeadlineExceeded)
				w.At(200 * time.Millisecond)
				stop := w.Step(d)
				defer stop()
				w.At(4 * time.Second) // past the not-after of the old clock only
				close(arrive)
				w.At(7 * time.Second)
				w.WantFree()
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
			world.Play(t, func(t *testing.T, w *world.World) {
				p := w.Process()
				outer := w.Lock(t.Context(), p.MyLock)
				arrive := make(chan struct{})
				p.On(world.RecountRun, 1, fault(arrive))
				ctx, cancel := context.WithTimeout(outer.Context(t.Context()), 100*time.Millisecond)
				defer cancel()
				_, err := p.MyLock.Lock(ctx)
				world.WantErr(t, err, context.DeadlineExceeded)
				if errors.Is(err, holdfast.ErrBusy) {
					t.Errorf("%v", err)
				}
				w.At(500 * time.Millisecond)
				close(arrive)
				w.At(1010 * time.Millisecond)
				w.WantHolder(outer.Owner(), 1)
				if outer.Err() != nil {
					t.Error(outer.Err())
				}
				inner := w.Lock(outer.Context(t.Context()), p.MyLock)
				w.WantHolder(outer.Owner(), 2)
				w.Release(inner)
				w.Release(outer)
				w.WantFree()
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
			world.Play(t, func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				outer := w.Lock(t.Context(), p.MyLock)
				arrive := make(chan struct{})
				p.On(world.RecountRun, 1, fault(arrive))
				ctx, cancel := context.WithCancel(context.WithoutCancel(outer.Context(t.Context())))
				nested := w.GoLock(ctx, p.MyLock)
				w.At(50 * time.Millisecond)
				freed := make(chan bool, 1)
				released := w.Try(func() (*holdfast.Lease, error) {
					err := outer.Release(context.Background())
					freed <- !w.Mini.Exists(world.Name)
					return nil, err
				})
				w.At(100 * time.Millisecond)
				cancel()
				_, err := nested.Result()
				world.WantErr(t, err, context.Canceled)
				if _, err := released.Result(); err == nil && !<-freed {
					t.Error("Release has returned nil, and the lock is still held")
				}
				w.At(500 * time.Millisecond)
				close(arrive)
				w.At(1010 * time.Millisecond)
				w.WantFree()
				w.Release(w.Lock(t.Context(), q.MyLock))
			})
		})
	}
}

// The outer lease is released while a nested lock is on its way, and then the nested lock is
// granted. The hold goes on.
func TestInterleaving_ReleaseWhileANestedLockIsGranted(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		outer := w.Lock(t.Context(), p.MyLock)
		arrive := make(chan struct{})
		p.On(world.RecountRun, 1, redistest.HoldUntil(arrive))
		nested := w.GoLock(context.WithoutCancel(outer.Context(t.Context())), p.MyLock)
		w.At(50 * time.Millisecond)
		released := w.Try(func() (*holdfast.Lease, error) { return nil, outer.Release(context.Background()) })
		w.At(100 * time.Millisecond)
		close(arrive)
		inner, err := nested.Result()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := released.Result(); err != nil {
			t.Error(err)
		}
		w.WantHolder(inner.Owner(), 1)
		w.At(time.Minute)
		if inner.Err() != nil {
			t.Error(inner.Err())
		}
		w.Release(inner)
		w.WantFree()
	})
}

// A nested lock waits until another nested lock is done. Before its turn comes, the lease that its
// context carries is released, so the waiting lock fails with ErrReleased.
func TestInterleaving_ReleaseWhileANestedLockWaitsForItsTurn(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		outer := w.Lock(t.Context(), p.MyLock)
		ctx := context.WithoutCancel(outer.Context(t.Context()))
		arrive := make(chan struct{})
		p.On(world.RecountRun, 1, redistest.HoldUntil(arrive))
		first := w.GoLock(ctx, p.MyLock)
		w.At(50 * time.Millisecond)
		second := w.GoLock(ctx, p.MyLock)
		w.At(100 * time.Millisecond)
		released := w.Try(func() (*holdfast.Lease, error) { return nil, outer.Release(context.Background()) })
		w.At(150 * time.Millisecond)
		close(arrive)
		inner, err := first.Result()
		if err != nil {
			t.Fatal(err)
		}
		if l, err := second.Result(); l != nil {
			t.Error("entered through a lease that has been released")
		} else {
			world.WantErr(t, err, holdfast.ErrReleased)
		}
		if _, err := released.Result(); err != nil {
			t.Error(err)
		}
		w.WantHolder(inner.Owner(), 1)
		w.Release(inner)
		w.WantFree()
	})
}

// A nested lock is sent twice. Its first sending reaches Redis after the inner lease has been
// released, and the count stays right.
func TestInterleaving_FirstSendingOfANestedLockArrivesLate(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		outer := w.Lock(t.Context(), p.MyLock)
		arrive := make(chan struct{})
		p.On(world.RecountRun, 1, redistest.HoldUntil(arrive))
		nested := w.GoLock(outer.Context(t.Context()), p.MyLock)
		w.At(50 * time.Millisecond)
		p.HangUp()
		inner, err := nested.Result()
		if err != nil {
			t.Fatal(err)
		}
		w.Release(inner)
		w.WantHolder(outer.Owner(), 1)
		w.At(500 * time.Millisecond)
		close(arrive)
		w.At(1100 * time.Millisecond)
		w.WantHolder(outer.Owner(), 1)
		w.Release(outer)
		w.WantFree()
	})
}

// Many goroutines lock and release one hold, nested and over a slow network, and the count in Redis
// stays right.
func TestInterleaving_ConcurrentNestedLocksAndReleases(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		outer := w.Lock(t.Context(), p.MyLock)
		ctx := outer.Context(t.Context())
		p.Each(func(s world.Sending) redistest.Fault { return redistest.Delay(time.Duration(s.N%3) * time.Millisecond) })
		var workers sync.WaitGroup
		var mu sync.Mutex
		var kept []*holdfast.Lease
		for i := range 4 {
			workers.Go(func() {
				for j := range 10 {
					a, b := w.GoLock(ctx, p.MyLock), w.GoLock(ctx, p.MyLock)
					first, err := a.Result()
					second, err2 := b.Result()
					if err != nil || err2 != nil {
						t.Error(err, err2)
						return
					}
					if i == j { // some leases stay
						mu.Lock()
						kept = append(kept, second)
						mu.Unlock()
					} else {
						workers.Go(func() { w.Release(second) })
					}
					w.Release(first)
				}
			})
		}
		workers.Wait()
		w.WantHolder(outer.Owner(), 1+len(kept))
		for _, l := range slices.Backward(kept) {
			w.Release(l)
		}
		w.WantHolder(outer.Owner(), 1)
		w.Release(outer)
		w.WantFree()
	})
}

// The subscription breaks at the instant of a release, so the message of the release is lost. The
// waiter gets the lock at its next poll.
func TestInterleaving_GrantWhoseMessageWasLost(t *testing.T) {
	for how, lose := range map[string]func(q *world.Process){
		"connection closed": func(q *world.Process) { q.Net.Cut() },
		"silence":           func(q *world.Process) { q.Net.BlackHole() },
	} {
		t.Run(how, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				held := w.Lock(t.Context(), p.MyLock)
				a := w.GoLock(t.Context(), q.MyLock)
				w.At(3 * time.Second)
				lose(q)
				w.Release(held)
				l, err := a.Result()
				if err != nil {
					t.Fatal(err)
				}
				// A silent connection costs its read timeout of 1 s in addition to the poll bound.
				world.Within(t, "in at", a.At, 3*time.Second, 5350*time.Millisecond)
				w.Release(l)
				q.Net.Cut() // so the server learns that silent connections are dead
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
			world.Play(t, func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				w.Release(w.Lock(t.Context(), p.MyLock))
				p.On(world.LockRun, 1, redistest.HoldReply(after(800*time.Millisecond)))
				a := w.GoLock(t.Context(), p.Mutex(world.Name, option))
				w.At(600 * time.Millisecond)
				next := w.Lock(t.Context(), q.MyLock)
				l, err := a.Result()
				if l != nil {
					t.Errorf("at %v: granted until %v", w.Now(), l.Deadline().Sub(w.Start))
				}
				world.WantErr(t, err, holdfast.ErrLost)
				w.At(5 * time.Second)
				w.WantHolder(next.Owner(), 1)
				w.Release(next)
			})
		})
	}
}
