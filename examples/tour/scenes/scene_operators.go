// These scenes are about what operators do: look on, keep jobs from beginning, let the urgent pass, and keep all keys
// under one prefix.

package scenes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fairlock"
)

func inAHurry(ctx context.Context, s *stage) error {
	s.note("A holds a fair lock. B waits; then C comes in a hurry. C passes B, who came just before.")
	name := s.name("counter")
	held, err := s.A.FairMutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	c := s.client(s.Redis)
	defer c.Close()
	var waiting [2]<-chan granted
	for n, m := range []*fairlock.Mutex{s.B.FairMutex(name), c.FairMutex(name, fairlock.Priority(1))} {
		waiting[n] = later(ctx, m.Lock)
		for waiters := 0; waiters <= n; {
			if waiters, err = s.A.FairMutex(name).QueueLength(ctx); err == nil {
				err = sleep(ctx, 5*time.Millisecond)
			}
			if err != nil {
				return err
			}
		}
	}
	if err := held.Release(ctx); err != nil {
		return err
	}
	var at [2]time.Time
	for _, n := range []int{1, 0} {
		g := <-waiting[n]
		if g.err != nil {
			return g.err
		}
		s.says("BC"[n:n+1], "has the lock")
		at[n] = g.at
		if err := g.lease.Release(ctx); err != nil {
			return err
		}
	}
	s.check("C was before B", at[1].Before(at[0]))
	return nil
}

func lookingOn(ctx context.Context, s *stage) error {
	s.note("B looks on at a name while A holds it and releases it. B takes no part, and asks only Redis.")
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m := s.A.Mutex(s.name("orders:42"))
	var seen []holdfast.Happening
	var l *holdfast.Lease
	for e := range s.B.Watch(ctx, m.Name(), holdfast.WatchEvery(50*time.Millisecond)) {
		var err error
		switch e.What {
		case holdfast.EventLooked:
			if err = e.Err; err == nil && l == nil {
				l, err = m.Lock(ctx)
			}
		case holdfast.EventGranted:
			s.says("B", "sees: %v", e)
			seen, err = append(seen, e.What), l.Release(ctx)
		default:
			s.says("B", "sees: %v", e)
			seen = append(seen, e.What)
		}
		if err != nil {
			return err
		}
		if len(seen) == 2 {
			break
		}
	}
	s.check("a grant, and then a release", fmt.Sprint(seen) == fmt.Sprint([]holdfast.Happening{holdfast.EventGranted, holdfast.EventReleased}))
	return nil
}

func paused(ctx context.Context, s *stage) error {
	s.note("While an operator migrates, no replica is to take a tick of the schedule.")
	job := s.name("nightly-report")
	operator := s.client(s.Redis, holdfast.WithIdentity("ann"))
	defer operator.Close()
	if err := operator.Pause(ctx, job, holdfast.Until(time.Now().Add(time.Hour)), holdfast.Because("migration 7")); err != nil {
		return err
	}
	midnight := time.Now().Truncate(time.Hour)
	won, err := s.A.Tick(ctx, job, midnight, time.Hour)
	s.says("A", "%v", err)
	s.check("A is kept from the tick, and knows by whom and why", !won && errors.Is(err, holdfast.ErrPaused) &&
		strings.Contains(err.Error(), "ann") && strings.Contains(err.Error(), "migration 7"))
	if err := operator.Resume(ctx, job); err != nil {
		return err
	}
	won, err = s.A.Tick(ctx, job, midnight, time.Hour)
	s.check("after the end it can still be won", won && err == nil)
	return nil
}

func underOnePrefix(ctx context.Context, s *stage) error {
	s.note("The rule of this Redis is ~app:* &app:*. With a prefix all keys of a Client begin with it.")
	prefix := s.name("app:")
	c := s.client(s.Redis, holdfast.WithKeyPrefix(prefix))
	defer c.Close()
	m := c.Mutex(s.name("orders"))
	l, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	defer l.Release(ctx)
	keys, err := s.Redis.Keys(ctx, prefix+"*").Result()
	if err != nil {
		return err
	}
	s.says("redis", "KEYS   %s", strings.Join(keys, "  "))
	s.check("the lock and its token are there", len(keys) == 2)
	other, err := s.A.Mutex(m.Name()).TryLock(ctx)
	defer other.Release(ctx)
	s.check("a Client without the prefix has another lock of that name", err == nil)
	return nil
}
