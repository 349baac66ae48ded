// This file plays orders of events that have broken other locks, one order in each test.

package rlock_test

import (
	"context"
	"fmt"
	"strings"
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
		play(t, tc.how, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			m := p.Mutex(world.Name, tc.option)
			l := w.Lock(t.Context(), m)
			// The end of the lease does not cancel this context. It stands for a context that was kept in a struct.
			stale := context.WithoutCancel(l.Context(t.Context()))
			tc.end(w, l)
			next := w.Lock(t.Context(), q.MyLock) // another process holds the lock now
			before, sent := w.Mini.Snapshot(), p.Runs("")
			world.WantErr(t, second(m.Lock(stale)), tc.cause)
			world.WantErr(t, second(m.TryLock(stale)), tc.cause)
			world.Equal(t, p.Runs("")-sent, 0, "%d requests")
			world.Equal(t, w.Mini.Snapshot(), before, "after\n%s\nbefore\n%s", before)
			w.Release(w.Lock(stale, p.Mutex("another name")))
			w.Release(next)
		})
	}
	play(t, "an inner lease released, the outer holds", func(t *testing.T, w *world.World) {
		p := w.Process()
		outer := w.Lock(t.Context(), p.MyLock)
		inner := w.Lock(outer.Context(t.Context()), p.MyLock)
		stale := context.WithoutCancel(inner.Context(t.Context()))
		w.Release(inner)
		world.WantErr(t, second(p.MyLock.Lock(stale)), holdfast.ErrReleased)
		w.WantHolder(outer.Owner(), 1)
		w.Release(outer)
	})
}

// A waiter gives up at the instant at which a release grants it the lock. The lock is handed on to the
// next waiter, of its own process or of another: at once, or if the network fails too, once no request
// of the one that gave up can arrive any more.
func TestInterleaving_WaiterGivesUpAsItIsGranted(t *testing.T) {
	for how, tc := range map[string]struct {
		fault redistest.Fault
		most  time.Duration
	}{
		"undisturbed": {redistest.Pass, 50 * time.Millisecond},
		"slow":        {redistest.Delay(2 * time.Millisecond), 50 * time.Millisecond},
		"reply held":  {redistest.HoldReply(nil), 1100 * time.Millisecond},
		"reply lost":  {redistest.Silence, 1100 * time.Millisecond},
	} {
		for _, early := range []time.Duration{-time.Millisecond, 0, time.Millisecond} {
			for _, kind := range []string{"mutex", "mutex, next of the same process", "fairmutex"} {
				play(t, fmt.Sprint(how, " ", early, ", ", kind), func(t *testing.T, w *world.World) {
					p, q, r := w.Process(), w.Process(), w.Process()
					kind, same := strings.CutSuffix(kind, ", next of the same process")
					if same {
						r = q
					}
					of := leased[kind].locker
					held := w.Lock(t.Context(), of(p))
					ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond+early)
					defer cancel()
					a := w.GoLock(ctx, of(q))
					synctest.Wait()
					next := w.GoLock(t.Context(), of(r))
					time.Sleep(500*time.Millisecond - w.Now()) // no Wait: all at the same instant
					q.On(world.EnterRun, 1, tc.fault)
					w.Release(held)
					if l, err := a.Result(); err == nil {
						w.Release(l)
					} else {
						world.WantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
					}
					l := granted(t, next)
					world.Within(t, "free at", next.At, 500*time.Millisecond, 500*time.Millisecond+tc.most)
					w.At(3 * time.Second)
					w.WantHolder(l.Owner(), 1)
					w.Release(l)
					synctest.Wait()
					wantQueued(w, 0)
				})
			}
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
			_, err := p.MyLock.ForceRelease(w.T.Context())
			must(w.T, err)
		},
		"flushed and found out": func(w *world.World, _ *world.Process, l *holdfast.Lease) {
			w.Mini.FlushAll()
			world.WantErr(w.T, l.Extend(w.T.Context(), time.Minute), holdfast.ErrLost)
		},
		"released in vain, then run out": func(w *world.World, p *world.Process, l *holdfast.Lease) {
			p.Each(func(s world.Sending) redistest.Fault {
				if (s.Script == world.FreeRun || s.Script == world.ReleaseRun) && s.At < 400*time.Millisecond {
					return redistest.ReplyError("LOADING Redis is loading the dataset in memory")
				}
				return redistest.Pass
			})
			if err := l.Release(w.T.Context()); err == nil {
				w.T.Error("released")
			}
		},
	} {
		play(t, how, func(t *testing.T, w *world.World) {
			p := w.Process()
			w.Release(w.Lock(t.Context(), p.MyLock)) // now the client knows the server's time
			arrive := make(chan struct{})
			p.On(world.LockRun, 1, redistest.HoldUntil(arrive))
			a := w.GoLock(t.Context(), p.Mutex(world.Name, holdfast.Fixed(300*time.Millisecond)))
			w.At(50 * time.Millisecond)
			p.HangUp() // the client gives up the connection; the request on it still arrives
			end(w, p, granted(t, a))
			w.At(800 * time.Millisecond)
			w.WantFree()
			close(arrive)
			w.At(1020 * time.Millisecond)
			w.WantFree()
			w.At(5 * time.Second)
		})
	}
}

// A renewal that arrives after the local loss prolongs nothing.
func TestInterleaving_RenewalExecutedAfterTheLocalLoss(t *testing.T) {
	for what, prolong := range map[string]func(p *world.Process, l *holdfast.Lease) error{
		"renewal":   nil,
		"extension": func(_ *world.Process, l *holdfast.Lease) error { return l.Extend(context.Background(), 90*time.Second) },
		"nested lock": func(p *world.Process, l *holdfast.Lease) error {
			return second(p.Mutex(world.Name, holdfast.Renewed(90*time.Second)).Lock(context.WithoutCancel(l.Context(context.Background()))))
		},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
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
				world.WantErr(t, second(a.Result()), holdfast.ErrLost)
			}
			w.At(150 * time.Second)
		})
	}
}

// Two processes attach to the same owner at once, each by a request that is sent twice, and exactly
// one of them gets the hold.
func TestInterleaving_TwoAttach(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		owner := detach(t, w.Lock(t.Context(), w.Process().MyLock))
		var both []*world.Attempt
		for range 2 {
			p := w.Process()
			p.On(world.MoveRun, 1, redistest.CloseAfterExec)
			both = append(both, w.Try(func() (*holdfast.Lease, error) { return p.MyLock.Attach(t.Context(), owner) }))
		}
		got := 0
		for _, a := range both {
			if l, err := a.Result(); err == nil {
				w.WantHolder(l.Owner(), 1)
				w.Release(l)
				got++
			} else {
				world.WantErr(t, err, holdfast.ErrLost)
			}
		}
		world.Equal(t, got, 1, "%d have attached")
	})
}

// The server's clock is set forwards or backwards. A hold that Redis still has goes on, tokens
// still grow, and calls and their not-afters still work.
func TestInterleaving_StepOfTheServersClock(t *testing.T) {
	for _, d := range []time.Duration{-time.Hour, -3 * time.Second, 500 * time.Millisecond, 15 * time.Second} {
		play(t, d.String(), func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			l := w.Lock(t.Context(), p.MyLock)
			ctx := l.Context(t.Context())
			world.WantErr(t, second(q.MyLock.TryLock(t.Context())), holdfast.ErrBusy) // q knows the clock as it was
			w.At(time.Second)
			defer w.Step(d)()
			w.At(60 * time.Second)
			world.WantEnd(t, ctx, nil)
			if ttl := w.PTTL(world.Name); ttl < 19*time.Second {
				t.Errorf("PTTL %v", ttl)
			}
			waiter := w.GoLock(t.Context(), q.MyLock)
			w.At(62 * time.Second)
			w.Release(l)
			next := granted(t, waiter)
			world.Within(t, "in at", waiter.At, 62*time.Second, 62*time.Second+5*time.Millisecond)
			if next.Token() <= l.Token() {
				t.Errorf("token %d after %d", next.Token(), l.Token())
			}
			w.At(2 * time.Minute)
			must(t, next.Err())
			w.Release(next)
			w.WantFree()
		})
	}
}

// The outer lease is released while a nested lock through it is on its way, and a second one waits for its turn behind
// it. The first is granted, and the hold goes on, or it is cancelled, and nothing is left. The second fails.
func TestInterleaving_ReleaseWhileNestedLocksAreOnTheirWay(t *testing.T) {
	for _, tc := range []struct {
		what             string
		executed, cancel bool
	}{{"granted", false, false}, {"cancelled, executed", true, true}, {"cancelled, executed later", false, true}} {
		play(t, tc.what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			outer := w.Lock(t.Context(), p.MyLock)
			through := context.WithoutCancel(outer.Context(t.Context()))
			arrive := make(chan struct{})
			fault := redistest.HoldUntil(arrive)
			if tc.executed {
				fault = redistest.HoldReply(arrive)
			}
			p.On(world.RecountRun, 1, fault)
			ctx, cancel := context.WithCancel(through)
			defer cancel()
			first := w.GoLock(ctx, p.MyLock)
			w.At(50 * time.Millisecond)
			behind := w.GoLock(through, p.MyLock)
			w.At(100 * time.Millisecond)
			released := w.Try(func() (*holdfast.Lease, error) {
				err := outer.Release(context.Background())
				if tc.cancel && err == nil && w.Mini.Exists(world.Name) {
					t.Error("Release has returned nil, and the lock is still held")
				}
				return nil, err
			})
			w.At(150 * time.Millisecond)
			if tc.cancel {
				cancel()
				world.WantErr(t, second(first.Result()), context.Canceled)
				w.At(500 * time.Millisecond)
			}
			close(arrive)
			world.WantErr(t, second(behind.Result()), holdfast.ErrReleased)
			_, err := released.Result()
			if !tc.cancel {
				must(t, err)
				inner := granted(t, first)
				w.WantHolder(inner.Owner(), 1)
				w.At(time.Minute)
				must(t, inner.Err())
				w.Release(inner)
			}
			w.At(max(w.Now(), 1010*time.Millisecond))
			w.WantFree()
			w.Release(w.Lock(t.Context(), q.MyLock))
		})
	}
}

// A grant whose answer comes when the lease has run out, or has only its grace left, or after its MaxHold, is no grant.
// What may still be in Redis is given back, and another process has the lock.
func TestInterleaving_GrantAnsweredAfterItsLease(t *testing.T) {
	for what, tc := range map[string]struct {
		options []holdfast.LeaseOption
		late    time.Duration
		is      error
	}{
		"fixed":   {[]holdfast.LeaseOption{holdfast.Fixed(500 * time.Millisecond)}, 800 * time.Millisecond, holdfast.ErrLost},
		"renewed": {[]holdfast.LeaseOption{holdfast.Renewed(500 * time.Millisecond)}, 800 * time.Millisecond, holdfast.ErrLost},
		"a grace": {
			[]holdfast.LeaseOption{holdfast.Renewed(time.Second), holdfast.Grace(500 * time.Millisecond), holdfast.MaxHold(time.Minute)},
			600 * time.Millisecond, holdfast.ErrLost,
		},
		"MaxHold": {[]holdfast.LeaseOption{holdfast.MaxHold(time.Nanosecond)}, time.Millisecond, holdfast.ErrMaxHold},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			w.Release(w.Lock(t.Context(), p.MyLock))
			p.On(world.LockRun, 1, redistest.DelayReply(tc.late))
			a := w.GoLock(t.Context(), p.Mutex(world.Name, tc.options...))
			synctest.Wait()
			next := w.GoLock(t.Context(), q.MyLock)
			world.WantErr(t, second(a.Result()), tc.is)
			w.At(tc.late + 100*time.Millisecond)
			l := granted(t, next)
			world.Within(t, "the next is in at", next.At, 0, tc.late+100*time.Millisecond)
			w.At(5 * time.Second)
			w.WantHolder(l.Owner(), 1)
			w.Release(l)
		})
	}
}
