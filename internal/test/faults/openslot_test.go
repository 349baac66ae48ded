// A slot of a cluster is on the move, and stays so: what goes on, and what waits until it has moved.

package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/barrier"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/shards"
	"github.com/holdfast-go/holdfast/slots"
)

// openSlot is a cluster in which the slot of a name can be open, with the name's first key on the server that it
// moves to and the others on the one that it moves from.
type openSlot struct {
	t       *testing.T
	ctx     context.Context
	cluster *redistest.ClusterSet
	rdb     *redis.ClusterClient
	p, q    *holdfast.Client
	name    string
	waiting []func() // each fails the test unless a call that waited has succeeded
}

func (s *openSlot) must(errs ...error) {
	s.t.Helper()
	if err := errors.Join(errs...); err != nil {
		s.t.Fatalf("%s: %v", s.name, err)
	}
}

// waits begins a call. It must not return while the slot is open, and then succeed.
func (s *openSlot) waits(what string, call func() error) {
	s.t.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		s.t.Errorf("%s: %s has not waited: %v", s.name, what, err)
	case <-time.After(300 * time.Millisecond):
	}
	s.waiting = append(s.waiting, func() {
		if err := ends(s.t, what, done, time.Minute); err != nil {
			s.t.Errorf("%s: %s: %v", s.name, what, err)
		}
	})
}

// open opens the slot, moves the key, if there is one, and has all waits that are begun in it go on after the move.
func (s *openSlot) open(key string, during func()) {
	s.t.Helper()
	move := s.cluster.OpenSlot(s.name)
	if key != "" {
		move.MoveKeys(key)
	}
	during()
	move.Finish()
	for _, over := range s.waiting {
		over()
	}
	s.waiting = nil
}

// renewed waits until a time that renewals put off has grown.
func (s *openSlot) renewed(what string, of func() float64) {
	s.t.Helper()
	last := of()
	redistest.Eventually(s.t, time.Minute, s.name+": "+what+" is renewed", func() error {
		if now := of(); now <= last {
			last = now // it runs out meanwhile
			return fmt.Errorf("%v", now)
		}
		return nil
	})
}

// left returns a key's time to live.
func (s *openSlot) left(key string) func() float64 {
	return func() float64 { return s.rdb.PTTL(s.ctx, key).Val().Seconds() }
}

// score returns the greatest score of a sorted set that is a time.
func (s *openSlot) score(key string) func() float64 {
	return func() float64 {
		times := &redis.ZRangeBy{Min: "0", Max: "(4503599627370496", Count: 1} // 2^52
		for _, of := range s.rdb.ZRevRangeByScoreWithScores(s.ctx, key, times).Val() {
			return of.Score
		}
		return 0
	}
}

// slotLease is soon renewed.
const slotLease = 10 * time.Second

func TestASlotStaysOpenUnderEachKind(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 2, 0)
	for kind, play := range map[string]func(s *openSlot){
		"mutex": opensUnderAMutex, "permits": opensUnderPermits, "semaphore": opensUnderASemaphore, "latch": opensUnderALatch,
		"barrier": opensUnderABarrier, "once": opensUnderWork, "tick": opensUnderATick, "leader": opensUnderALeader,
		"several": opensUnderSeveral, "quorum": opensUnderAQuorum, "slots": opensUnderSlots, "shards": opensUnderShards,
	} {
		t.Run(kind, func(t *testing.T) {
			rdb := cluster.Client(t)
			ctx := redistest.Within(t, 5*time.Minute)
			play(&openSlot{t: t, ctx: ctx, cluster: cluster, rdb: rdb, name: kind,
				p: clienttest.OpenClient(t, cluster.Client(t)), q: clienttest.OpenClient(t, cluster.Client(t))})
		})
	}
}

// A hold is renewed, extended and released, and is granted to nobody else. Those that wait for a new one hear of its
// release when the slot has moved once more.
func opensUnderAMutex(s *openSlot) {
	s.name = "{" + s.name + "}"
	mine := func(which string) *holdfast.Mutex { return s.p.Mutex(which+s.name, holdfast.Renewed(slotLease)) }
	held, released := clienttest.Grab(s.t, mine("held")), clienttest.Grab(s.t, mine("released"))
	var next *holdfast.Lease
	s.open("held"+s.name, func() {
		s.renewed("the lock", s.left("held"+s.name))
		s.must(held.Extend(s.ctx, time.Minute), released.Release(s.ctx))
		if _, err := s.q.Mutex("held" + s.name).Lock(redistest.Within(s.t, 300*time.Millisecond)); err == nil {
			s.t.Error("it was granted twice")
		}
		s.waits("Lock", func() (err error) {
			next, err = s.q.Mutex("new" + s.name).Lock(s.ctx)
			return err
		})
	})
	waits := begin(func() (*holdfast.Lease, error) { return mine("new").Lock(s.ctx) })
	s.cluster.MoveSlot(s.name)
	s.must(next.Release(s.ctx))
	last, err := waits()
	s.must(err, held.Release(s.ctx), last.Release(s.ctx))
}

func opensUnderPermits(s *openSlot) {
	mine := s.p.PermitSemaphore(s.name, holdfast.Renewed(slotLease))
	s.must(second(mine.TrySetPermits(s.ctx, 2)))
	l, err := mine.Acquire(s.ctx, 1)
	s.must(err)
	s.open(s.name, func() {
		s.renewed("a permit", s.score("{"+s.name+"}:timeout"))
		s.must(l.Extend(s.ctx, time.Minute), l.Err())
		s.waits("Acquire", func() error { return second(s.q.PermitSemaphore(s.name).Acquire(s.ctx, 1)) })
		s.waits("Release", func() error { return l.Release(s.ctx) })
	})
}

func opensUnderASemaphore(s *openSlot) {
	mine := s.p.Semaphore(s.name)
	s.must(second(mine.TrySetPermits(s.ctx, 3)), mine.Acquire(s.ctx, 1))
	s.open(s.name, func() {
		s.must(second(s.q.Semaphore(s.name).Available(s.ctx)))
		s.waits("Acquire", func() error { return s.q.Semaphore(s.name).Acquire(s.ctx, 1) })
		s.waits("Release", func() error { return mine.Release(s.ctx, 1) })
	})
	if n, err := mine.Available(s.ctx); n != 2 || err != nil {
		s.t.Errorf("%d are free, %v", n, err)
	}
}

func opensUnderSlots(s *openSlot) {
	numbers := func(c *holdfast.Client) *slots.Slots {
		return c.Slots(s.name, 2, slots.Lease(holdfast.Renewed(slotLease)))
	}
	l, err := numbers(s.p).Acquire(s.ctx)
	s.must(err)
	at, err := keys.Space("").ForSlots(s.name)
	s.must(err)
	s.open(at.Taken, func() {
		s.renewed("a number", s.score(at.Taken))
		s.waits("Acquire", func() error { return second(numbers(s.q).Acquire(s.ctx)) })
		s.must(l.Err(), l.Release(s.ctx))
	})
}

// A member goes on with its works, and another has its share when the slot has moved.
func opensUnderShards(s *openSlot) {
	ctx, stop := context.WithCancel(s.ctx)
	var all sync.WaitGroup
	member := func(c *holdfast.Client) (works chan context.Context) {
		works = make(chan context.Context, 8)
		all.Go(func() {
			_ = c.Shards(s.name, 2, shards.Lease(slotLease)).Run(ctx, func(ctx context.Context, _ *shards.Shard) error {
				works <- ctx
				<-ctx.Done()
				return nil
			})
		})
		return works
	}
	mine := member(s.p)
	first, other := <-mine, <-mine
	at, err := keys.Space("").ForShards(s.name)
	s.must(err)
	s.open(at.Members, func() {
		s.renewed("a member", s.score(at.Members))
		s.waits("another member", func() error {
			<-member(s.q)
			return nil
		})
		s.must(first.Err(), other.Err())
	})
	stop()
	all.Wait()
}

func opensUnderALatch(s *openSlot) {
	mine := s.p.Latch(s.name)
	s.must(second(mine.TrySetCount(s.ctx, 1)))
	s.open(s.name, func() {
		s.must(second(s.q.Latch(s.name).Count(s.ctx)))
		s.waits("Wait", func() error { return s.q.Latch(s.name).Wait(s.ctx) })
		s.waits("CountDown", func() error { return second(mine.CountDown(s.ctx)) })
	})
}

func opensUnderABarrier(s *openSlot) {
	party := func(c *holdfast.Client) *barrier.Barrier { return c.Barrier(s.name, 2, barrier.Lease(slotLease)) }
	arrived := func() {
		redistest.Eventually(s.t, time.Minute, "it has arrived", func() error {
			if state, err := party(s.q).State(s.ctx); err != nil || state.Arrived != 1 {
				return fmt.Errorf("%+v, %v", state, err)
			}
			return nil
		})
	}
	first := begin(func() (barrier.Trip, error) { return party(s.p).Await(s.ctx) })
	arrived()
	s.open("holdfast_barrier:{"+s.name+"}", func() {
		arrived()
		s.renewed("a place", s.score("holdfast_barrier_places:{"+s.name+"}"))
		s.waits("the arrival of the last", func() error { return second(party(s.q).Await(s.ctx)) })
	})
	s.must(second(first()))
}

// The work's result is written, and the token with it dropped that it outlasts; who asks for it waits.
func opensUnderWork(s *openSlot) {
	s.name += ":key"
	of := func(c *holdfast.Client) *holdfast.Once {
		return c.Once("once", once.Keep(8*24*time.Hour), once.Lease(lease.Renewed(slotLease)))
	}
	result := make(chan int)
	value := func(c *holdfast.Client) (int, error) {
		return once.Value(s.ctx, of(c), "key", func(context.Context) (int, error) { return <-result, nil })
	}
	works := begin(func() (int, error) { return value(s.p) })
	redistest.Eventually(s.t, time.Minute, "it works", func() error {
		if s.left("holdfast_once:{"+s.name+"}")() <= 0 {
			return errors.New("not yet")
		}
		return nil
	})
	s.open("holdfast_once:{"+s.name+"}", func() {
		s.renewed("the work", s.left("holdfast_once:{"+s.name+"}"))
		s.waits("another that asks", func() error {
			n, err := value(s.q)
			return errors.Join(err, is(n, 7))
		})
		result <- 7
		n, err := works()
		s.must(err, is(n, 7))
	})
}

// is returns an error unless a number is the one that is wanted.
func is(n, want int) error {
	if n != want {
		return fmt.Errorf("it is %d, want %d", n, want)
	}
	return nil
}

func opensUnderATick(s *openSlot) {
	at := time.Now()
	won := func(c *holdfast.Client, at time.Time) bool {
		w, err := c.Tick(s.ctx, s.name, at, time.Hour)
		s.must(err)
		return w
	}
	key, err := keys.Space("").ForTick(s.name, at)
	s.must(err)
	first := won(s.p, at)
	move := s.cluster.OpenSlot(key)
	before := won(s.q, at)
	move.MoveKeys(key)
	after := won(s.q, at)
	move.Finish()
	if !first || before || after {
		s.t.Errorf("won: %t; again, in the open slot: %t and %t", first, before, after)
	}
}

// The leader goes on and resigns; the next one leads when the slot has moved.
func opensUnderALeader(s *openSlot) {
	elect := func(c *holdfast.Client) *candidate { return campaign(s.ctx, c.Leader(s.name, leader.Lease(slotLease))) }
	leads, next := elect(s.p), (*candidate)(nil)
	s.must(second(leads.leads(s.ctx)))
	s.open(s.name, func() {
		s.renewed("the lead", s.left(s.name))
		next = elect(s.q)
		s.waits("the next term", func() error { return second(next.leads(s.ctx)) })
		s.must(leads.retire())
		if next.IsLeader() {
			s.t.Error("a candidate leads in an open slot")
		}
	})
	s.must(next.retire())
}

// The first of the locks is held while the second is waited for.
func opensUnderSeveral(s *openSlot) {
	first := s.q.Mutex("first of " + s.name)
	clienttest.GiveBack(s.t, clienttest.Grab(s.t, s.p.Mutex(s.name))) // its token stays
	both := holdfast.NewMultiLock(s.p.Mutex(s.name), s.p.Mutex("first of "+s.name))
	s.open("", func() {
		s.waits("Lock", func() error {
			l, err := both.Lock(s.ctx)
			if err == nil {
				err = l.Release(s.ctx)
			}
			return err
		})
		redistest.Is(s.t, "the first of the locks", redistest.Err(first.TryLock(s.ctx)), holdfast.ErrBusy)
	})
}

// One of three servers is a cluster.
func opensUnderAQuorum(s *openSlot) {
	others := []*redistest.Proc{redistest.Server(s.t), redistest.Server(s.t)}
	quorum := func(c *holdfast.Client) *holdfast.Quorum {
		all := []*holdfast.Client{c}
		for _, o := range others {
			all = append(all, clienttest.OpenClient(s.t, o.Client(s.t)))
		}
		return holdfast.NewQuorum(s.name, all, holdfast.Renewed(slotLease))
	}
	mine, theirs := quorum(s.p), quorum(s.q)
	l, err := mine.Lock(s.ctx)
	s.must(err)
	s.open(s.name, func() {
		s.renewed("its lock", s.left(s.name))
		redistest.Is(s.t, "another's TryLock", redistest.Err(theirs.TryLock(s.ctx)), holdfast.ErrBusy)
		s.must(l.Err(), l.Release(s.ctx))
		next, err := theirs.Lock(s.ctx) // by the other two
		s.must(err)
		s.must(next.Release(s.ctx))
	})
}

// The keys of a slot have moved, the slot has not yet, and its former server dies or is failed over as planned. Redis does
// not replicate that a slot is on the move, so that the new master grants the lock again; Valkey does. The first
// holder is notified by its next renewal, and the second has a greater token.
func TestAFailoverWhileASlotMoves(t *testing.T) {
	t.Parallel()
	for how, fail := range map[string]func(*redistest.ClusterSet){
		"planned": func(c *redistest.ClusterSet) { c.Failover("half moved") },
		"killed":  func(c *redistest.ClusterSet) { c.KillMasterOf("half moved"); c.MasterOf("half moved") },
	} {
		t.Run(how, func(t *testing.T) { failsWhileASlotMoves(t, fail) })
	}
}

func failsWhileASlotMoves(t *testing.T, fail func(*redistest.ClusterSet)) {
	cluster := redistest.Cluster(t, 3, 1)
	p, q := clienttest.OpenClient(t, cluster.Client(t)), clienttest.OpenClient(t, cluster.Client(t))
	l := clienttest.Grab(t, p.Mutex("half moved", holdfast.Renewed(slotLease)))
	move := cluster.OpenSlot("half moved")
	move.MoveKeys(move.Keys()...)
	fail(cluster)
	next, err := q.Mutex("half moved").TryLock(clienttest.Generous(t))
	switch {
	case errors.Is(err, holdfast.ErrBusy):
		vouched(t, map[string]*holdfast.Lease{"half moved": l}, slotLease)
		clienttest.GiveBack(t, l)
		return
	case err != nil:
		t.Fatal(err)
	case next.Token() <= l.Token():
		t.Errorf("the token went from %d to %d", l.Token(), next.Token())
	}
	lostLease(t, l)
	clienttest.GiveBack(t, next)
}
