// These scenes are about counting: permits, leased or not, and a latch.

package scenes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

func threePermits(ctx context.Context, s *stage) error {
	const workers, permits = 10, 3
	s.note("Ten workers, five in A and five in B, call an API that allows three calls at a time.")
	name := s.name("api")
	if _, err := s.A.Semaphore(name).TrySetPermits(ctx, permits); err != nil {
		return err
	}
	var inside crowd
	err := everyone(workers, func(i int) error {
		who, client := s.process(i)
		api := client.Semaphore(name)
		if err := api.Acquire(ctx, 1); err != nil {
			return err
		}
		s.says(who, "worker %d calls, %d at a time", i, inside.enter())
		err := sleep(ctx, 50*time.Millisecond)
		inside.leave()
		return errors.Join(err, api.Release(ctx, 1))
	})
	if err != nil {
		return err
	}
	free, err := s.Redis.Get(ctx, name).Int()
	s.says("redis", "GET %s   %d", name, free)
	s.check(fmt.Sprintf("never more than three at a time: %d", inside.most), inside.most <= permits)
	s.check("all permits are back", free == permits)
	return err
}

func permitExpires(ctx context.Context, s *stage) error {
	s.note("There is one permit. A takes it for 500 ms, and works for too long. B waits.")
	name := s.name("slot")
	a := s.A.PermitSemaphore(name, holdfast.Fixed(500*time.Millisecond))
	b := s.B.PermitSemaphore(name)
	if err := a.SetPermits(ctx, 1); err != nil {
		return err
	}
	late, err := a.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	s.says("A", "has permit %s", a.IDs(late)[0])
	if err := s.showPermits(ctx, name); err != nil {
		return err
	}
	next, err := b.Acquire(ctx, 1)
	got := time.Now()
	if err != nil {
		return err
	}
	defer next.Release(ctx)
	s.says("B", "has permit %s", b.IDs(next)[0])
	s.check("A was to stop before B could begin", late.Deadline().Before(got))
	err = late.Release(ctx)
	s.says("A", "Release: %v", err)
	taken, terr := b.Acquired(ctx)
	s.check("A's late release gives nothing back: B's permit is still taken", errors.Is(err, holdfast.ErrLost) && taken == 1)
	return terr
}

func permitsComeBack(ctx context.Context, s *stage) error {
	s.note("C is a third process. It takes two of three permits, for a lease of 1.5 s that is")
	s.note("renewed, and dies. B wants all three.")
	name := s.name("licences")
	b := s.B.PermitSemaphore(name)
	if err := b.SetPermits(ctx, 3); err != nil {
		return err
	}
	c := s.client(s.Redis)
	defer c.Close()
	if _, err := c.PermitSemaphore(name, holdfast.Renewed(1500*time.Millisecond)).Acquire(ctx, 2); err != nil {
		return err
	}
	if err := c.Close(); err != nil {
		return err
	}
	died := time.Now()
	s.says("C", "is gone, with two permits")
	if err := s.showPermits(ctx, name); err != nil {
		return err
	}
	_, err := b.TryAcquire(ctx, 3)
	s.says("B", "TryAcquire of three: %v", err)
	s.check("they are still taken, since C's work may go on", errors.Is(err, holdfast.ErrBusy))

	all, err := b.Acquire(ctx, 3)
	if err != nil {
		return err
	}
	defer all.Release(ctx)
	s.says("B", "has all three, %s after C has died, and nobody has cleaned up", ms(time.Since(died)))
	_, err = b.Acquire(ctx, 4)
	s.says("B", "Acquire of four: %v", err)
	s.check("who asks for more than there are is told at once", errors.Is(err, holdfast.ErrNoPermits))
	return all.Release(ctx)
}

// showPermits prints the state in Redis of a semaphore with leased permits.
func (s *stage) showPermits(ctx context.Context, name string) error {
	free, err := s.Redis.Get(ctx, name).Result()
	if err != nil {
		return err
	}
	taken, err := s.Redis.ZRangeWithScores(ctx, "{"+name+"}:timeout", 0, -1).Result()
	if err != nil {
		return err
	}
	s.says("redis", "GET %s   %s", name, free)
	for _, permit := range taken {
		s.says("redis", "ZRANGE {%s}:timeout   %x until %s", name, permit.Member,
			time.UnixMilli(int64(permit.Score)).Format("15:04:05.000"))
	}
	return nil
}

func latchOfFive(ctx context.Context, s *stage) error {
	const workers = 5
	s.note("A deploys when five workers are ready. Each counts the latch down once.")
	name := s.name("ready")
	if _, err := s.A.Latch(name).TrySetCount(ctx, workers); err != nil {
		return err
	}
	opened := make(chan error, 1)
	var at time.Time
	go func() {
		err := s.A.Latch(name).Wait(ctx)
		at = time.Now()
		opened <- err
	}()

	var last time.Time // the time just before the last count-down
	inOrder := true
	for i := range workers {
		who, client := s.process(i)
		if err := sleep(ctx, 40*time.Millisecond); err != nil {
			return err
		}
		select {
		case err := <-opened:
			return fmt.Errorf("open before all were ready: %w", err)
		default:
		}
		last = time.Now()
		left, err := client.Latch(name).CountDown(ctx)
		if err != nil {
			return err
		}
		s.says(who, "worker %d is ready, %d to go", i, left)
		inOrder = inOrder && left == int64(workers-1-i)
	}
	if err := <-opened; err != nil {
		return err
	}
	s.says("A", "deploys, %s after the last count", ms(at.Sub(last)))
	s.check("each counted once", inOrder)
	s.check("the latch opened at zero, and not before", at.After(last))
	gone, err := s.Redis.Exists(ctx, name).Result()
	s.check("its key is gone", gone == 0)
	return err
}
