// This scene is about numbers that are leased, such as the worker ids of ids made of a clock.

package scenes

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/slots"
)

func numberedSlots(ctx context.Context, s *stage) error {
	const size, lease, rest = 3, 500 * time.Millisecond, time.Second
	s.note("A, B and C make ids, each with a worker id of its own, of three. C dies. Its number is not given out")
	s.note("again at once, since C's clock may have been ahead: it rests for a second after C's lease.")
	name := s.name("worker-id")
	c := s.client(s.Redis)
	defer c.Close()
	numbered := func(client *holdfast.Client) *slots.Slots {
		return client.Slots(name, size, slots.Quarantine(rest), slots.Lease(holdfast.Renewed(lease)))
	}
	var all []slots.Slot
	for who, client := range []*holdfast.Client{s.A, s.B, c} {
		slot, err := numbered(client).Acquire(ctx)
		if err != nil {
			return err
		}
		defer slot.Release(ctx)
		s.says("ABC"[who:who+1], "is worker %d, with token %d", slot.Number(), slot.Token())
		all = append(all, slot)
	}
	s.check("each has another number", all[0].Number() == 0 && all[1].Number() == 1 && all[2].Number() == 2)

	if err := c.Close(); err != nil {
		return err
	}
	died := time.Now()
	s.says("C", "is gone")
	again, err := numbered(s.A).Acquire(ctx)
	if err != nil {
		return err
	}
	defer again.Release(ctx)
	s.says("A", "has worker id %d too, %s after C has died", again.Number(), ms(time.Since(died)))
	s.check("C's number has rested for a second", again.Number() == 2 && time.Since(died) > rest)
	s.check("the token is greater", again.Token() > all[2].Token())

	err = all[0].Release(ctx)
	next, errNext := numbered(s.B).TryAcquire(ctx)
	defer next.Release(ctx)
	s.says("B", "has number %d as soon as A has released it", next.Number())
	s.check("what is released is free at once", next.Number() == 0)
	return errors.Join(err, errNext)
}
