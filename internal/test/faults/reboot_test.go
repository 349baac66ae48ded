// A server comes back without its data, and its clock is set before anybody has asked it: what each kind does then.
// A clock that is set forward later ends what was granted before.

package faults

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/shards"
	"github.com/holdfast-go/holdfast/slots"
)

// found is the time in which whoever holds something finds that Redis no longer has it: by the next renewal.
const found = 10*time.Second + 100*time.Millisecond

// rebooting is a server that loses its data, with two processes.
type rebooting struct {
	forgetful
	behind bool // the clock was set back
}

// grows fails the test unless a token is greater than the one before, or smaller if the clock was set back: an
// empty server has nothing else to go by.
func (r *rebooting) grows(before, after int64) {
	r.t.Helper()
	if (after > before) == r.behind {
		r.t.Errorf("token %d after %d, and the clock was set back: %t", after, before, r.behind)
	}
}

func TestAServerWithoutItsDataKnowsNobody(t *testing.T) {
	for name, step := range map[string]time.Duration{"its clock goes on": 0, "its clock is set forward": time.Hour, "its clock is set back": -time.Hour} {
		for what, play := range map[string]func(r *rebooting){
			"fair":    rebootsUnderAQueue,
			"permits": rebootsUnderPermits,
			"latch":   rebootsUnderALatch,
			"once":    rebootsUnderWork,
			"tick":    func(r *rebooting) { forgetsATick(&r.forgetful) },
			"leader":  rebootsUnderALeader,
			"several": rebootsUnderSeveral,
			"slots":   rebootsUnderSlots,
			"shards":  rebootsUnderShards,
		} {
			t.Run(what+", "+name, func(t *testing.T) {
				world.Play(t, func(t *testing.T, w *world.World) {
					p, q := w.Process(), w.Process()
					stop := func() {}
					forget := func() {
						w.Mini.FlushAll()
						if step != 0 {
							stop = w.Step(step)
						}
						p.Net.Cut()
						q.Net.Cut()
					}
					play(&rebooting{forgetful{t, t.Context(), p.Client, q.Client, func() {}, forget}, step < 0})
					stop()
					_, _ = p.Close(), q.Close()
					w.Mini.FlushAll()
				})
			})
		}
	}
}

// Those that wait have the lock in the order in which they came, and the former holder's release leaves it to them.
func rebootsUnderAQueue(r *rebooting) {
	lock := func(c *holdfast.Client) <-chan *holdfast.Lease {
		granted := make(chan *holdfast.Lease, 1)
		go func() {
			l, err := c.FairMutex("desk").Lock(r.ctx)
			if err == nil {
				granted <- l
			}
		}()
		time.Sleep(10 * time.Millisecond)
		return granted
	}
	held := <-lock(r.p)
	first, next := lock(r.q), lock(r.q)
	time.Sleep(2 * time.Second)
	r.forget()
	l := ends(r.t, "the first that waits", first, 2*time.Second)
	r.grows(held.Token(), l.Token())
	ends(r.t, "the former holder", held.Done(), found)
	r.want(held.Release(r.ctx), holdfast.ErrLost)
	synctest.Wait()
	if len(next) > 0 || l.Err() != nil {
		r.t.Errorf("the first has %v, and the next is in: %t", l.Err(), len(next) > 0)
	}
	r.must(l.Release(r.ctx), ends(r.t, "the next", next, 100*time.Millisecond).Release(r.ctx))
}

// Nobody has a permit until the number is set again.
func rebootsUnderPermits(r *rebooting) {
	s, waits := r.p.PermitSemaphore("s"), make(chan error, 1)
	r.must(second(s.TrySetPermits(r.ctx, 2)))
	held, err := s.Acquire(r.ctx, 1)
	r.must(err)
	go func() { waits <- second(r.q.PermitSemaphore("s").Acquire(r.ctx, 2)) }()
	time.Sleep(2 * time.Second)
	r.forget()
	r.want(ends(r.t, "one that waits", waits, 2*time.Second), holdfast.ErrNoPermits)
	ends(r.t, "the holder", held.Done(), found)
	r.want(held.Release(r.ctx), holdfast.ErrLost)
	r.want(second(s.TryAcquire(r.ctx, 1)), holdfast.ErrNoPermits)
	r.must(s.SetPermits(r.ctx, 2))
	again, err := s.TryAcquire(r.ctx, 2)
	r.must(err)
	time.Sleep(time.Minute)
	r.must(again.Release(r.ctx))
}

// Who waits has the number, and the former holder's release leaves it to them.
func rebootsUnderSlots(r *rebooting) {
	acquire := func(c *holdfast.Client) slots.Slot {
		l, err := c.Slots("ids", 1).Acquire(r.ctx)
		r.must(err)
		return l
	}
	held, waits := acquire(r.p), make(chan slots.Slot, 1)
	go func() { waits <- acquire(r.q) }()
	time.Sleep(2 * time.Second)
	r.forget()
	next := ends(r.t, "one that waits", waits, 2*time.Second)
	r.grows(held.Token(), next.Token())
	ends(r.t, "the former holder", held.Done(), found)
	r.want(held.Release(r.ctx), holdfast.ErrLost)
	r.must(next.Err(), next.Release(r.ctx))
}

// The work ends, and begins again in a new membership.
func rebootsUnderShards(r *rebooting) {
	ctx, stop := context.WithCancel(r.ctx)
	tokens, over := make(chan int64, 8), make(chan error, 1)
	go func() {
		over <- r.p.Shards("parts", 1).Run(ctx, func(ctx context.Context, s *shards.Shard) error {
			tokens <- s.Token()
			<-ctx.Done()
			return nil
		})
	}()
	first := <-tokens
	time.Sleep(2 * time.Second)
	r.forget()
	r.grows(first, ends(r.t, "the work begins again", tokens, found+5*time.Second))
	stop()
	<-over
}

// Who waits does not know; who comes finds no latch.
func rebootsUnderALatch(r *rebooting) {
	l, waits := r.p.Latch("l"), make(chan error, 1)
	r.must(second(l.TrySetCount(r.ctx, 1)))
	go func() { waits <- r.q.Latch("l").Wait(r.ctx) }()
	time.Sleep(2 * time.Second)
	r.forget()
	r.want(ends(r.t, "one that waits", waits, 2*time.Second), holdfast.ErrUnknown)
	r.must(l.Wait(r.ctx))
	r.must(second(l.TrySetCount(r.ctx, 1)))
	go func() { waits <- r.q.Latch("l").Wait(r.ctx) }()
	time.Sleep(2 * time.Second)
	r.must(second(l.CountDown(r.ctx)), ends(r.t, "one that waits for the next", waits, 100*time.Millisecond))
}

// What is done is done again; what is under way ends, and another does it.
func rebootsUnderWork(r *rebooting) {
	token := func(c *holdfast.Client, key string) int64 {
		n, err := once.Value(r.ctx, c.Once("o"), key, func(ctx context.Context) (int64, error) { return once.Token(ctx), nil })
		r.must(err)
		return n
	}
	done, ended := token(r.p, "done"), make(chan error, 1)
	go func() {
		_, _ = once.Value(r.ctx, r.p.Once("o"), "under way", func(ctx context.Context) (int64, error) {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return 0, ctx.Err()
		})
	}()
	time.Sleep(2 * time.Second)
	r.forget()
	r.grows(done, token(r.q, "done"))
	r.grows(done, token(r.q, "under way"))
	r.want(ends(r.t, "the work", ended, found), holdfast.ErrLost)
}

// The leader asks every 1.25 s whether it leads.
func rebootsUnderALeader(r *rebooting) {
	first, next := campaign(r.ctx, r.p.Leader("l")), (*candidate)(nil)
	led, err := first.leads(r.ctx)
	r.must(err)
	next = campaign(r.ctx, r.q.Leader("l"))
	time.Sleep(2 * time.Second)
	r.forget()
	r.grows(led.Token(), ends(r.t, "the next term", next.terms, 1300*time.Millisecond).Token())
	r.want(ends(r.t, "the former term", first.ended, 1300*time.Millisecond), holdfast.ErrLost)
	r.must(first.retire(), next.retire())
}

func rebootsUnderSeveral(r *rebooting) {
	both := func(c *holdfast.Client) *holdfast.MultiLock { return holdfast.NewMultiLock(c.Mutex("a"), c.Mutex("b")) }
	held, err := both(r.p).Lock(r.ctx)
	r.must(err)
	r.forget()
	next, err := both(r.q).Lock(r.ctx)
	r.must(err)
	ends(r.t, "the former holder", held.Done(), found)
	r.want(held.Release(r.ctx), holdfast.ErrLost)
	r.must(next.Release(r.ctx))
}
