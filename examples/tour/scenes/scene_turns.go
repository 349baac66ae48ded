// These scenes are about waiting: turns, a wait that ends, and how a waiter is woken.

package scenes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

func takeTurns(ctx context.Context, s *stage) error {
	name := s.shared + "resource:x"
	turns, work := 3, 60*time.Millisecond
	if s.alone {
		s.note("Each comes %d times and stays %v. With REDIS_URL, tours in two terminals take turns.", turns, work)
	} else {
		turns, work = 8, 250*time.Millisecond
		s.note("Each comes %d times and stays %v. Start another tour in another terminal now:", turns, work)
		s.note("it uses the same name, %q, and takes turns with this one.", name)
	}

	s.note("Which of them is next is not promised; that is what a fair lock is for.")

	var mu sync.Mutex // guards tokens; the lock under test guards the rest
	var tokens []int64
	come := func(who string, client *holdfast.Client) error {
		for range turns {
			l, err := client.Mutex(name).Lock(ctx)
			if err != nil {
				return err
			}
			s.says(who, "in, with token %d", l.Token())
			err = s.useAlone(ctx, name+":inside", who, func() error { return sleep(ctx, work) })
			mu.Lock()
			tokens = append(tokens, l.Token())
			mu.Unlock()
			s.says(who, "out")
			if err := errors.Join(err, l.Release(ctx)); err != nil {
				return err
			}
		}
		return nil
	}

	var both sync.WaitGroup
	var errA, errB error
	both.Go(func() { errA = come("A", s.A) })
	both.Go(func() { errB = come("B", s.B) })
	both.Wait()
	if err := ctx.Err(); err != nil {
		return err // the user stopped the tour
	}

	s.check("nobody met another inside", errA == nil && errB == nil)
	s.check(fmt.Sprintf("all %d turns were had", 2*turns), len(tokens) == 2*turns)
	s.check("each turn had a greater token than the one before", increasing(tokens))
	return errors.Join(errA, errB)
}

// useAlone does work that only one visitor may do at a time, and fails if another visitor is
// inside. During the work the name of the visitor is on the door.
func (s *stage) useAlone(ctx context.Context, door, who string, work func() error) error {
	first, err := s.Redis.SetNX(ctx, door, who, 10*time.Second).Result()
	if err != nil {
		return err
	}
	if !first {
		return fmt.Errorf("%s found %s inside", who, s.Redis.Get(ctx, door).Val())
	}
	return errors.Join(work(), s.Redis.Del(context.WithoutCancel(ctx), door).Err())
}

func increasing(tokens []int64) bool {
	for i := 1; i < len(tokens); i++ {
		if tokens[i] <= tokens[i-1] {
			return false
		}
	}
	return true
}

func giveUp(ctx context.Context, s *stage) error {
	s.note("A works for 800 ms under a lease of 1 s. B waits for 500 ms at most: the context")
	s.note("says so.")
	name := s.name("report")
	a, err := s.A.Mutex(name, holdfast.Renewed(time.Second)).Lock(ctx)
	if err != nil {
		return err
	}
	defer a.Release(ctx)
	began := time.Now()
	s.says("A", "has it, for a lease of 1 s")

	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	_, err = s.B.Mutex(name).Lock(short)
	waited, stillHeld := time.Since(began), a.Err() == nil
	s.says("B", "gives up: %v", err)
	s.check("B waited for its 500 ms, and A held all the while", waited >= 500*time.Millisecond && stillHeld)
	s.check("the error matches ErrBusy", errors.Is(err, holdfast.ErrBusy))
	s.check("and the context's own, context.DeadlineExceeded", errors.Is(err, context.DeadlineExceeded))

	if err := sleep(ctx, 800*time.Millisecond-time.Since(began)); err != nil {
		return err
	}
	if err := a.Release(ctx); err != nil {
		return err
	}
	s.says("A", "is done after 800 ms, and releases")
	next, err := s.B.Mutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	s.says("B", "comes back and has it")
	if err := next.Release(ctx); err != nil {
		return err
	}
	after, err := s.show(ctx, name)
	s.check("nothing is left of the wait that was given up", len(after.holders) == 0)
	return err
}

func wakeUp(ctx context.Context, s *stage) error {
	s.note("A releases five times, at different moments, while B waits: first by Lock, which")
	s.note("listens for the message, then by asking every 100 ms, as one does without it.")
	name := s.name("queue")
	m := s.B.Mutex(name)
	var told, asked []time.Duration
	for i := range 5 {
		hold := time.Duration(10+20*i) * time.Millisecond
		byMessage, err := s.wakeAfter(ctx, name, hold, m.Lock, s.waiters)
		if err != nil {
			return err
		}
		byPoll, err := s.wakeAfter(ctx, name, hold, askEvery(100*time.Millisecond, m), nobodyListens)
		if err != nil {
			return err
		}
		told, asked = append(told, byMessage), append(asked, byPoll)
		s.says("B", "in %8s after the release by message, %8s by polling", ms(byMessage), ms(byPoll))
	}
	s.check(fmt.Sprintf("the median is %s by message and %s by polling", ms(median(told)), ms(median(asked))),
		median(told) < median(asked))
	return nil
}

// wakeAfter measures how long after A's release B gets the lock. A holds the lock for the time
// hold, counted from the moment when B waits.
func (s *stage) wakeAfter(ctx context.Context, name string, hold time.Duration, lock locking,
	waits func(context.Context, string) error) (time.Duration, error) {
	a, err := s.A.Mutex(name).Lock(ctx)
	if err != nil {
		return 0, err
	}
	defer a.Release(ctx)
	b := later(ctx, lock)
	if err := errors.Join(waits(ctx, name), sleep(ctx, hold)); err != nil {
		return 0, err
	}
	released := time.Now()
	if err := a.Release(ctx); err != nil {
		return 0, err
	}
	came := <-b
	if came.err != nil {
		return 0, came.err
	}
	return came.at.Sub(released), came.lease.Release(ctx)
}

func nobodyListens(context.Context, string) error { return nil }

// askEvery locks by polling, as a waiter without messages would.
func askEvery(pause time.Duration, m holdfast.Locker) locking {
	return func(ctx context.Context) (*holdfast.Lease, error) {
		for {
			l, err := m.TryLock(ctx)
			if !errors.Is(err, holdfast.ErrBusy) {
				return l, err
			}
			if err := sleep(ctx, pause); err != nil {
				return nil, err
			}
		}
	}
}
