// A Quorum is a lock on a majority of servers: how it is granted and waited for, what its contexts carry, and what its
// errors say.

package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/figures"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/quorum"
)

func TestQuorum(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		p := w.process()
		q := p.quorum()
		l := w.lock(q)
		ctx := l.Context(t.Context())
		redises.WantLive(t, l, ctx)
		w.WantHeldOn(5)
		if left := time.Until(l.Deadline()); left < 29*time.Second || left > 30*time.Second {
			t.Errorf("%v left", left)
		}
		if l.Token() != slices.Max(l.Tokens()) || len(l.Tokens()) != 5 {
			t.Errorf("token %d of %d", l.Token(), l.Tokens())
		}
		for _, other := range []*quorum.Quorum{q, w.process().quorum()} {
			world.WantErr(t, redistest.Err(other.TryLock(t.Context())), holdfast.ErrBusy)
		}

		inner, err := p.quorum().TryLock(ctx) // another Quorum value, the same lock
		redistest.Must(t, err)
		world.Equal(t, inner.Token(), l.Token(), "re-entered with the token %d")
		redises.Release(t, l)
		redises.WantEnded(t, l, ctx, holdfast.ErrReleased)
		redises.WantLive(t, inner, inner.Context(t.Context()))
		world.WantErr(t, redistest.Err(q.Lock(ctx)), holdfast.ErrReleased)
		time.Sleep(100 * time.Second) // every member is renewed
		w.WantHeldOn(5)
		both := make(chan error)
		for range 2 {
			go func() { both <- inner.Release(t.Context()) }()
		}
		if a, b := <-both, <-both; (a == nil) == (b == nil) || !errors.Is(errors.Join(a, b), holdfast.ErrReleased) {
			t.Errorf("two releases at once: %v, %v", a, b)
		}
		w.WantHeldOn(0)
	})
}

func TestQuorum_Do(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		q := w.process().quorum()
		err := holdfast.Do(t.Context(), q, func(ctx context.Context) error {
			return holdfast.Do(ctx, q, func(context.Context) error { return nil })
		}, redises.WantName(t, name)...)
		redistest.Check(t, err)
		w.WantHeldOn(0)
	})
}

// A quorum is granted exactly when a majority is up. Otherwise the servers that granted are free again.
func TestQuorum_Masks(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		w.began()
		time.Sleep(3 * time.Second) // until then a Lock may take two rounds
		for mask := range 32 {
			p := w.process()
			for i := range p.Clients {
				if mask&(1<<i) == 0 {
					p.Unplug(i)
				}
			}
			up, asked := bits.OnesCount(uint(mask)), w.Now()
			l, err := p.quorum().TryLock(t.Context())
			if (err == nil) != (up >= 3) {
				t.Errorf("%05b: %v", mask, err)
			}
			if took := w.Now() - asked; took > 600*time.Millisecond || err == nil && took > 10*time.Millisecond {
				t.Errorf("%05b: it took %v", mask, took)
			}
			if err == nil {
				w.WantHeldOn(up)
				redises.Release(t, l)
			} else {
				world.WantErr(t, err, holdfast.ErrNoQuorum)
			}
			w.WantHeldOn(0)
		}
	})
}

// A wait ends with its context, and says what it has waited for. A waiter gets the lock soon after the release.
func TestQuorum_WaitEnds(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p, other := w.began(), w.process()
		waits := func(within time.Duration, targets ...error) {
			t.Helper()
			ctx := redistest.Within(t, within)
			began := w.Now()
			world.WantErr(t, redistest.Err(p.quorum().Lock(ctx)), targets...)
			world.Equal(t, w.Now()-began, within, "it took %v")
		}
		l := w.lock(other.quorum())
		waits(3*time.Second, holdfast.ErrBusy, context.DeadlineExceeded)
		time.AfterFunc(20*time.Second, func() { l.Release(context.Background()) })
		began := w.Now()
		next := w.lock(p.quorum())
		world.Within(t, "it waited", w.Now()-began, 20*time.Second, 20*time.Second+250*time.Millisecond)
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
		redises.Release(t, next)
		p.Unplug(0, 1)
		waits(3*time.Second, holdfast.ErrNoQuorum, context.DeadlineExceeded)
		w.WantHeldOn(0)
		waits(0, context.DeadlineExceeded)
	})
}

// A quorum is not granted if its token could not be written to a majority while the grants last. It is
// not enough that they were valid when a majority had answered.
func TestQuorum_GrantedTooLate(t *testing.T) {
	for says, fault := range map[string]redistest.Fault{
		"the token was written to 1 of 3": redistest.ReplyError("NOPERM no"),
		"too late":                        redistest.Delay(220 * time.Millisecond), // twice: the script is not known there
	} {
		play(t, 3, func(t *testing.T, w *stage) {
			p := w.began()
			w.Servers[0].Set(tokenKey, strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10))
			for _, net := range p.Nets[1:] {
				net.OnCommand(func(c redistest.Command) redistest.Fault {
					if len(c.Args) == 6 && c.Args[2] == tokenKey { // raise
						return fault
					}
					return redistest.Pass
				})
			}
			_, err := holdfast.NewQuorumOf(name, p.Clients, lease.DefaultLease, func(c *holdfast.Client) holdfast.Locker {
				return c.Mutex(name, holdfast.Fixed(200*time.Millisecond))
			}).TryLock(t.Context())
			world.WantErr(t, err, holdfast.ErrNoQuorum)
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("refused for another reason: %v", err)
			}
			w.WantHeldOn(0)
		})
	}
}

// The error names what a server does not allow as soon as that keeps a majority from granting.
func TestQuorum_Refused(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.began()
		w.Servers[0].Set(name, "a string")
		redises.Release(t, w.lock(p.quorum()))
		w.Servers[1].Set(name, "a string")
		_, err := p.quorum().Lock(t.Context())
		world.WantErr(t, err, holdfast.ErrWrongType)
		redises.Says(t, err, "server0:6379: "+holdfast.ErrWrongType.Error(), "server2:6379: granted")
		w.Servers[0].Del(name)
		w.Servers[1].Del(name)
		for i := range 2 {
			w.Servers[i].Set(markerKey, "none of ours")
		}
		world.WantErr(t, redistest.Err(p.quorum().Lock(t.Context())), holdfast.ErrWrongType)
		w.WantHeldOn(0)
	})
}

// The members of a quorum may be any Locker: here readers share the lock, and a writer is alone.
func TestQuorum_OfReadersAndWriters(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		side := func(p *process, write bool) *quorum.Quorum {
			return holdfast.NewQuorumOf(name, p.Clients, lease.DefaultLease, func(c *holdfast.Client) holdfast.Locker {
				if write {
					return c.RWMutex(name)
				}
				return c.RWMutex(name).RLocker()
			})
		}
		p, other := w.process(), w.process()
		first := w.lock(side(p, false))
		second := w.lock(side(other, false))
		_, err := side(other, true).TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		// A reader's context does not re-enter the write side.
		world.WantErr(t, redistest.Err(side(p, true).TryLock(first.Context(t.Context()))), holdfast.ErrBusy)
		redises.Release(t, first)
		redises.Release(t, second)
		writer := w.lock(side(p, true))
		world.WantErr(t, redistest.Err(side(other, false).TryLock(t.Context())), holdfast.ErrBusy)
		redises.Release(t, writer)
		reader := w.lock(side(other, false))
		world.Equal(t, reader.Token(), writer.Token(), "the readers' token is %d, the writer's was %d", writer.Token())
		redises.Release(t, reader)
	})
}

func TestQuorum_BadArguments(t *testing.T) {
	play(t, 2, func(t *testing.T, w *stage) {
		c := w.process().Clients
		short := holdfast.NewQuorumOf(name, c, time.Second, func(c *holdfast.Client) holdfast.Locker { return c.Mutex(name) })
		kept := holdfast.NewQuorumOf(name, c, 20*time.Second, func(c *holdfast.Client) holdfast.Locker {
			return c.Mutex(name, holdfast.Grace(15*time.Second))
		})
		// With 2 permits on each of three servers, three holders could have 2 each.
		permits := holdfast.NewQuorumOf(name, c, 30*time.Second, func(c *holdfast.Client) holdfast.Locker { return c.PermitSemaphore(name).Locker(1) })
		for _, tc := range []struct {
			q    *quorum.Quorum
			says string
		}{
			{holdfast.NewQuorum(name, nil), "no servers"},
			{holdfast.NewQuorum(name, []*holdfast.Client{c[0], nil}), "Client 1 is nil"},
			{holdfast.NewQuorum(name, []*holdfast.Client{nil}), "Client 0 is nil"},
			{holdfast.NewQuorum(name, []*holdfast.Client{c[0], c[1], c[0]}), "twice"},
			{holdfast.NewQuorum(name, []*holdfast.Client{c[0], holdfast.New(nil)}), "go-redis client is nil"},
			{holdfast.NewQuorum("", c), "name"},
			{holdfast.NewQuorum(name, c, holdfast.Renewed(time.Millisecond)), "shorter than"},
			{short, "longer than"},
			{kept, "longer than"},
			{permits, "does not say where it stands"},
		} {
			_, err := tc.q.Lock(t.Context())
			if err == nil {
				t.Fatalf("granted, want an error that says %q", tc.says)
			}
			world.WantErr(t, err, holdfast.ErrBadArgument)
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v: does not say %q", err, tc.says)
			}
		}
		w.WantHeldOn(0)
	})
}

// A context of the lease is freed with its parent, and ends with the lease. One that has ended re-enters nothing, though
// the lease that it carries lasts.
func TestQuorum_Contexts(t *testing.T) {
	play(t, 1, func(t *testing.T, w *stage) {
		q := w.process().quorum()
		l := w.lock(q)
		parent := redistest.Within(t, time.Second)
		for range 1000 {
			one, end := context.WithCancel(parent)
			ctx := l.Context(one)
			end()
			if ctx.Err() == nil {
				t.Fatal("it outlives its parent")
			}
		}
		ctx := l.Context(parent)
		time.Sleep(time.Second)
		synctest.Wait()
		if ctx.Err() != context.DeadlineExceeded {
			t.Error(ctx.Err())
		}
		world.WantErr(t, redistest.Err(q.Lock(ctx)), context.DeadlineExceeded)
		redises.WantLive(t, l, l.Context(t.Context()))
		redises.Release(t, l)
		world.WantErr(t, redistest.Err(q.Lock(ctx)), holdfast.ErrReleased)
		world.WantErr(t, context.Cause(l.Context(t.Context())), holdfast.ErrReleased)
	})
}

// The error of a quorum is one line with a word for each server.
func TestQuorum_SaysWhatEachServerSaid(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p, other := w.process(), w.process()
		p.Unplug(0)
		_, err := p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrNoQuorum)
		redises.Says(t, err, "0 of 3 granted, 2 needed", "server0:6379: ", "server1:6379: new, or has lost its data: counts in 30s",
			holdfast.ErrNoQuorum.Error())
		p.Plug(0)

		l := w.lock(other.quorum())
		_, err = p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		redises.Says(t, err, "server2:6379: held by another")
		p.Unplug(1, 2)
		_, err = p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrNoQuorum)
		redises.Says(t, err, "server0:6379: held by another")
		p.Plug(1, 2)
		time.Sleep(2 * time.Second) // the next dials need not pause after the failed ones
		redises.Release(t, l)

		l = w.lock(p.quorum())
		p.Unplug(0, 1)
		redises.Says(t, l.Release(t.Context()), "2 of 3 servers not released")
		p.Plug(0, 1)
		w.WantHeldOn(0)
	})
}

// A try that its context ends in the middle says so, with the context's cause.
func TestATryOfAQuorumThatItsContextEndsSaysSo(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.began()
		p.Unplug(0, 1, 2)
		why := errors.New("why it ends")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, why)
		defer cancel()
		world.WantErr(t, redistest.Err(p.quorum().TryLock(ctx)), context.DeadlineExceeded, why, holdfast.ErrNoQuorum)
	})
}

// Processes lock, work and lock again at once. Each gets its turn: those that have waited longest come first,
// also where servers are silent.
func TestQuorum_WaitersTakeTurns(t *testing.T) {
	for _, tc := range []struct {
		processes, silent int
		work, lasts       time.Duration
	}{
		{10, 0, 30 * time.Millisecond, 2 * time.Second},
		{4, 2, 5 * time.Millisecond, 1500 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%d processes, %d silent servers, %v", tc.processes, tc.silent, tc.work), func(t *testing.T) {
			play(t, 5, func(t *testing.T, w *stage) {
				w.began()
				time.Sleep(3 * time.Second) // after this the quorum no longer begins
				var quorums []*quorum.Quorum
				for range tc.processes {
					p := w.process()
					for s := range 5 {
						p.Nets[s].OnCommand(func(redistest.Command) redistest.Fault {
							if s < tc.silent {
								return redistest.Silence
							}
							return redistest.Delay(500 * time.Microsecond)
						})
					}
					quorums = append(quorums, p.quorum())
				}
				over := redistest.Within(t, tc.lasts)
				grants, longest := figures.Turns(over, quorums, tc.work)
				sum := 0
				for _, n := range grants {
					sum += n
				}
				t.Logf("%d grants, for each process %v; the longest wait of each %v", sum, grants, longest)
				for i, n := range grants {
					if n < sum/tc.processes/2 || longest[i] > 1300*time.Millisecond {
						t.Errorf("of %d grants to %d processes one had %d, and waited for %v", sum, tc.processes, n, longest[i])
					}
				}
				for _, p := range w.Processes {
					for s := range 5 {
						p.Nets[s].OnCommand(nil)
					}
				}
				time.Sleep(5 * time.Second) // until the places of those that did not say that they leave are over
			})
		})
	}
}

// A caller that asks in vain though nobody holds the lock, as its servers are too far away for that, does not keep
// those that came after it waiting.
func TestQuorum_AWaiterThatCannotHaveItYields(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		holder, far, near := w.began(), w.process(), w.process()
		time.Sleep(3 * time.Second) // after this the quorum no longer begins
		l := w.lock(holder.quorum())
		for _, net := range far.Nets {
			net.OnCommand(func(c redistest.Command) redistest.Fault {
				if len(c.Args) > 2 && c.Args[2] == name {
					return redistest.Delay(600 * time.Millisecond)
				}
				return redistest.Pass
			})
		}
		gaveUp, giveUp := context.WithCancel(t.Context())
		var waits sync.WaitGroup
		waits.Go(func() { _, _ = far.quorum().Lock(gaveUp) })
		time.Sleep(2 * time.Second)
		granted := make(chan time.Duration)
		go func() {
			ctx := redistest.Within(t, 30*time.Second)
			l, err := near.quorum().Lock(ctx)
			granted <- w.Now()
			if err != nil {
				t.Error(err)
				return
			}
			redises.Release(t, l)
		}()
		time.Sleep(time.Second)
		released := w.Now()
		redises.Release(t, l)
		if at := <-granted; at-released > 5*time.Second {
			t.Errorf("granted %v after the release", at-released)
		}
		giveUp()
		waits.Wait()
		for _, net := range far.Nets {
			net.OnCommand(nil)
		}
		time.Sleep(5 * time.Second)
	})
}

// anotherWaits has the servers know somebody who has waited for a second, and whose place is over after 1.4 s.
func (w *stage) anotherWaits() {
	for _, rdb := range w.RDBs {
		ms := time.Now().UnixMilli()
		rdb.Set(w.T.Context(), "holdfast_quorum_turns:{orders}", fmt.Sprintf("another:1 %d %d\n", ms-1000, ms+1400), 1400*time.Millisecond)
	}
}

// knowing returns a process that has found out, by a lock of its own, that another waits.
func (w *stage) knowing() *process {
	p := w.began()
	time.Sleep(3 * time.Second) // after this the quorum no longer begins
	w.anotherWaits()
	l := w.lock(p.quorum())
	time.Sleep(100 * time.Millisecond) // until then it has heard who waits
	redises.Release(w.T, l)
	return p
}

// requests returns how many scripts a lock and its release take.
func (w *stage) requests(p *process) (n int) {
	for _, sign := range []int{-1, 1} {
		for _, net := range p.Nets {
			n += sign * (net.Count("EVALSHA") + net.Count("EVAL"))
		}
		if sign < 0 {
			redises.Release(w.T, w.lock(p.quorum()))
			time.Sleep(5 * time.Second)
		}
	}
	return n
}

// Where others wait, a caller takes its turn before it asks at all; once they have gone, it asks at once again.
func TestQuorum_AloneAgainItAsksAtOnce(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.knowing()
		time.Sleep(2 * time.Second) // the other has gone
		turn, alone := w.requests(p), w.requests(p)
		if again := w.requests(p); turn <= alone || again != alone {
			t.Errorf("a lock and its release take %d requests, then %d, then %d", turn, alone, again)
		}
	})
}

// A Lock that ends before its turn has come says what it has waited for.
func TestQuorum_BusyThoughItHasNotAsked(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.knowing()
		w.anotherWaits()
		ctx := redistest.Within(t, 300*time.Millisecond)
		_, err := p.quorum().Lock(ctx)
		world.WantErr(t, err, holdfast.ErrBusy)
		world.WantErr(t, err, context.DeadlineExceeded)
		time.Sleep(5 * time.Second)
	})
}

// TryLock does not wait for its turn, though the quorum has just begun, so that it asks twice.
func TestQuorum_ATryDoesNotTakeItsTurn(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.process()
		w.anotherWaits()
		l, err := p.quorum().TryLock(t.Context())
		redistest.Must(t, err)
		if w.Now() > time.Second {
			t.Errorf("it took %v", w.Now())
		}
		redises.Release(t, l)
		time.Sleep(5 * time.Second)
	})
}

// Where others are known to wait, a Lock asks only in its turn. Even so it says that servers are missing, or that its
// Clients shut down.
func TestQuorum_InTurnItStillSaysWhatIsWrong(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.knowing()
		p.Unplug(0, 1)
		ctx := redistest.Within(t, 300*time.Millisecond)
		world.WantErr(t, redistest.Err(p.quorum().Lock(ctx)), holdfast.ErrNoQuorum)
	})
	play(t, 3, func(t *testing.T, w *stage) {
		p, rival, waiter := w.knowing(), w.process(), w.process()
		var keeps []*holdfast.Lease
		for _, c := range p.Clients {
			keeps = append(keeps, w.Lock(c.Mutex("keeps")))
		}
		l := w.lock(rival.quorum())
		waits, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- redistest.Err(waiter.quorum().Lock(waits)) }()
		time.Sleep(time.Second)
		done := p.ShutDown(t.Context())
		ctx := redistest.Within(t, 10*time.Second)
		world.WantErr(t, redistest.Err(p.quorum().Lock(ctx)), holdfast.ErrClosed)
		leave()
		world.WantErr(t, <-left, context.Canceled)
		redises.Release(t, l)
		for _, k := range keeps {
			redises.Release(t, k)
		}
		for range p.Clients {
			<-done
		}
		time.Sleep(5 * time.Second)
	})
}
