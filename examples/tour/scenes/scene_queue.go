// These scenes are about order: the fair queue, and readers together with a writer.

package scenes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fairlock"
)

const visitors = 6

func fairQueue(ctx context.Context, s *stage) error {
	s.note("While A holds it, %d come one after another, to A and to B in turn. Redis keeps the", visitors)
	s.note("queue, a ZSet; the scores are the order in which it heard of them.")
	name := s.name("desk")
	opening, err := s.A.FairMutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	defer opening.Release(ctx)

	var in arrivals
	var came []string // owners in the order of arrival
	done := make(chan error, visitors)
	for i := range visitors {
		who, client := s.process(i)
		ticket := client.FairMutex(name).Ticket()
		go func() { done <- in.visit(ctx, i, ticket.Lock) }()
		if err := queued(ctx, ticket); err != nil {
			return err
		}
		s.says(who, "visitor %d comes", i)
		came = append(came, ticket.Owner().String())
	}
	inRedis, err := s.showQueue(ctx, name, came)
	if err != nil {
		return err
	}
	s.check("the ZSet has them in the order in which they came", slices.Equal(inRedis, came))
	if err := errors.Join(opening.Release(ctx), all(done, visitors)); err != nil {
		return err
	}
	s.check(fmt.Sprintf("and so they are served: %v", in.order), slices.Equal(in.order, []int{0, 1, 2, 3, 4, 5}))
	return s.unfairQueue(ctx)
}

// queued waits until the ticket has a place in the queue.
func queued(ctx context.Context, ticket *fairlock.Ticket) error {
	for {
		_, waits, err := ticket.Position(ctx)
		if waits || err != nil {
			return err
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// showQueue prints the queue of a fair lock, and returns the owners in it.
func (s *stage) showQueue(ctx context.Context, name string, visitors []string) (owners []string, err error) {
	queue, err := s.Redis.ZRangeWithScores(ctx, "holdfast_lock_queue:{"+name+"}", 0, -1).Result()
	for _, entry := range queue {
		owner := fmt.Sprint(entry.Member)
		owners = append(owners, owner)
		s.says("redis", "ZRANGE   %.0f  visitor %d, %s", entry.Score, slices.Index(visitors, owner), owner)
	}
	return owners, err
}

// unfairQueue does the same with a lock that promises no order.
func (s *stage) unfairQueue(ctx context.Context) error {
	name := s.name("counter")
	opening, err := s.A.Mutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	defer opening.Release(ctx)
	var in arrivals
	done := make(chan error, visitors)
	for i := range visitors {
		_, client := s.process(i)
		go func() { done <- in.visit(ctx, i, client.Mutex(name).Lock) }()
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	if err := errors.Join(opening.Release(ctx), all(done, visitors)); err != nil {
		return err
	}
	s.says("A, B", "the same at a Mutex: served in the order %v", in.order)
	s.check("which serves everyone too, but promises no order", len(in.order) == visitors)
	return nil
}

// arrivals records the order in which visitors were let in.
type arrivals struct {
	mu    sync.Mutex // guards order
	order []int
}

func (a *arrivals) visit(ctx context.Context, i int, lock locking) error {
	turn, err := lock(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.order = append(a.order, i)
	a.mu.Unlock()
	return errors.Join(sleep(ctx, 5*time.Millisecond), turn.Release(ctx))
}

func readWrite(ctx context.Context, s *stage) error {
	s.note("A and B read. B wants to write, which has to wait for both to leave. Then it goes on as")
	s.note("a reader, and nobody else writes in between.")
	name := s.name("catalogue")
	a, b := s.A.RWMutex(name), s.B.RWMutex(name)
	reader, err := a.RLock(ctx)
	if err != nil {
		return err
	}
	defer reader.Release(ctx)
	other, err := b.RLock(ctx)
	if err != nil {
		return err
	}
	defer other.Release(ctx)
	s.says("A, B", "both read")
	together, err := s.show(ctx, name)
	if err != nil {
		return err
	}
	s.check("readers are in together: the mode and two holders", together.holders["mode"] == "read" && len(together.holders) == 3)

	next := later(ctx, b.Lock)
	if err := sleep(ctx, 100*time.Millisecond); err != nil {
		return err
	}
	left := time.Now()
	s.says("B", "has asked for the write lock, and waits")
	if err := errors.Join(reader.Release(ctx), other.Release(ctx)); err != nil {
		return err
	}
	w := <-next
	if w.err != nil {
		return w.err
	}
	defer w.lease.Release(ctx)
	s.says("B", "writes, %s after the readers began to leave", ms(w.at.Sub(left)))
	s.check("not before they left", w.at.After(left))
	_, err = a.TryRLock(ctx)
	s.says("A", "TryRLock: %v", err)
	s.check("the writer is alone", errors.Is(err, holdfast.ErrBusy))
	return s.downgrade(ctx, name, w.lease)
}

// downgrade makes B, which holds the write side, stay as a reader.
func (s *stage) downgrade(ctx context.Context, name string, write *holdfast.Lease) error {
	stays, err := s.B.RWMutex(name).RLock(write.Context(ctx))
	if err != nil {
		return err
	}
	defer stays.Release(ctx)
	if err := write.Release(ctx); err != nil {
		return err
	}
	s.says("B", "has locked for reading, and then released the write lock")
	now, err := s.show(ctx, name)
	if err != nil {
		return err
	}
	s.check("B is a reader now, without a moment between", now.holders["mode"] == "read" && stays.Err() == nil)
	joins, err := s.A.RWMutex(name).RLock(ctx)
	if err != nil {
		return err
	}
	defer joins.Release(ctx)
	_, err = s.A.RWMutex(name).TryLock(ctx)
	s.check("others may read with it, and nobody writes", errors.Is(err, holdfast.ErrBusy))
	return errors.Join(joins.Release(ctx), stays.Release(ctx))
}
