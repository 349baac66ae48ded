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
	"github.com/holdfast-go/holdfast/shards"
	"github.com/holdfast-go/holdfast/slots"
)

// found is the time in which whoever holds something finds that Redis no longer has it: by the next renewal.
const found = 10*time.Second + 100*time.Millisecond

func TestAServerWithoutItsDataKnowsNobody(t *testing.T) {
	for name, step := range map[string]time.Duration{"its clock goes on": 0, "its clock is set forward": time.Hour, "its clock is set back": -time.Hour} {
		for what, play := range map[string]func(*forgetful){
			"fair":       rebootsUnderAQueue,
			"permits":    rebootsUnderPermits,
			"latch":      rebootsUnderALatch,
			"once, done": forgetsAResult,
			"once":       forgetsWork,
			"tick":       forgetsATick,
			"leader":     forgetsALead,
			"several":    forgetsSeveral,
			"slots":      rebootsUnderSlots,
			"shards":     rebootsUnderShards,
		} {
			t.Run(what+", "+name, func(t *testing.T) {
				world.Play(t, func(t *testing.T, w *world.World) {
					p, q := w.Process(), w.Process()
					stop := func() {}
					forget := func() {
						time.Sleep(2 * time.Second)
						w.Mini.FlushAll()
						if step != 0 {
							stop = w.Step(step)
						}
						p.Net.Cut()
						q.Net.Cut()
					}
					play(&forgetful{t: t, ctx: t.Context(), p: p.Client, q: q.Client, keep: func() {}, forget: forget,
						behind: step < 0, found: found})
					stop()
					_, _ = p.Close(), q.Close()
					w.Mini.FlushAll()
				})
			})
		}
	}
}

// Those that wait have the lock in the order in which they came, and the former holder's release leaves it to them.
func rebootsUnderAQueue(r *forgetful) {
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
func rebootsUnderPermits(r *forgetful) {
	s, waits := r.p.PermitSemaphore("s"), make(chan error, 1)
	r.must(second(s.TrySetPermits(r.ctx, 2)))
	held, err := s.Acquire(r.ctx, 1)
	r.must(err)
	go func() { waits <- second(r.q.PermitSemaphore("s").Acquire(r.ctx, 2)) }()
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
func rebootsUnderSlots(r *forgetful) {
	acquire := func(c *holdfast.Client) slots.Slot {
		l, err := c.Slots("ids", 1).Acquire(r.ctx)
		r.must(err)
		return l
	}
	held, waits := acquire(r.p), make(chan slots.Slot, 1)
	go func() { waits <- acquire(r.q) }()
	r.forget()
	next := ends(r.t, "one that waits", waits, 2*time.Second)
	r.grows(held.Token(), next.Token())
	ends(r.t, "the former holder", held.Done(), found)
	r.want(held.Release(r.ctx), holdfast.ErrLost)
	r.must(next.Err(), next.Release(r.ctx))
}

// The work ends, and begins again in a new membership.
func rebootsUnderShards(r *forgetful) {
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
	r.forget()
	r.grows(first, ends(r.t, "the work begins again", tokens, found+5*time.Second))
	stop()
	<-over
}

// Who waits does not know; who comes finds no latch.
func rebootsUnderALatch(r *forgetful) {
	l, waits := r.p.Latch("l"), make(chan error, 1)
	r.must(second(l.TrySetCount(r.ctx, 1)))
	go func() { waits <- r.q.Latch("l").Wait(r.ctx) }()
	r.forget()
	r.want(ends(r.t, "one that waits", waits, 2*time.Second), holdfast.ErrUnknown)
	r.must(l.Wait(r.ctx))
	r.must(second(l.TrySetCount(r.ctx, 1)))
	go func() { waits <- r.q.Latch("l").Wait(r.ctx) }()
	time.Sleep(2 * time.Second)
	r.must(second(l.CountDown(r.ctx)), ends(r.t, "one that waits for the next", waits, 100*time.Millisecond))
}
