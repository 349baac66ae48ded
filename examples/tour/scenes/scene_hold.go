// These scenes are about holding: re-entry, renewal, and leases that end.

package scenes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/holdfast-go/holdfast"
)

func reenter(ctx context.Context, s *stage) error {
	s.note("What carries the hold is the context, not the goroutine. Each Lock has its own")
	s.note("Lease; Redis keeps one field with the count.")
	name := s.name("account:7")
	m := s.A.Mutex(name)

	var leases []*holdfast.Lease
	inside := ctx
	for depth := 1; depth <= 3; depth++ {
		l, err := m.Lock(inside)
		if err != nil {
			return err
		}
		defer l.Release(ctx)
		leases = append(leases, l)
		inside = l.Context(inside)
		s.says("A", "Lock no. %d", depth)
		if err := s.checkCount(ctx, name, l.Owner(), depth); err != nil {
			return err
		}
	}
	s.check("the three leases share one token", leases[0].Token() == leases[2].Token())

	_, err := m.TryLock(ctx)
	s.says("A", "TryLock with a context that carries no lease: %v", err)
	s.check("without the lease's context even A is a stranger", errors.Is(err, holdfast.ErrBusy))

	for depth := 3; depth >= 1; depth-- {
		if err := leases[depth-1].Release(ctx); err != nil {
			return err
		}
		s.says("A", "Release no. %d", depth)
		if err := s.checkCount(ctx, name, leases[0].Owner(), depth-1); err != nil {
			return err
		}
	}
	err = leases[0].Release(ctx)
	s.says("A", "one Release more: %v", err)
	s.check("a second release of a lease says so and does nothing", errors.Is(err, holdfast.ErrReleased))
	return nil
}

// checkCount shows the lock, and checks that owner alone holds it, with that count.
func (s *stage) checkCount(ctx context.Context, name string, owner holdfast.Owner, count int) error {
	now, err := s.show(ctx, name)
	if err != nil {
		return err
	}
	if count == 0 {
		s.check("the key is gone", len(now.holders) == 0)
		return nil
	}
	want := map[string]string{owner.String(): fmt.Sprint(count)}
	s.check(fmt.Sprintf("the count is %d, and the key will expire", count), maps.Equal(now.holders, want) && now.ttl > 0)
	return nil
}

func watchdog(ctx context.Context, s *stage) error {
	const length = 1200 * time.Millisecond
	s.note("The lease is 1.2 s here, for 30 s by default, and renewed every 400 ms, a third of")
	s.note("it. A works for three leases and a bit, and does nothing to keep the lock.")
	name := s.name("import")
	a, err := s.A.Mutex(name, holdfast.Renewed(length)).Lock(ctx)
	if err != nil {
		return err
	}
	defer a.Release(ctx)

	renewals, always, before := 0, true, length
	for end := time.Now().Add(3*length + 100*time.Millisecond); time.Now().Before(end); {
		now, err := s.look(ctx, name)
		if err != nil {
			return err
		}
		always = always && now.holders[a.Owner().String()] == "1" && now.ttl > 0
		if now.ttl > before {
			renewals++
			s.says("redis", "PTTL was %d ms, is %d ms: renewed", before.Milliseconds(), now.ttl.Milliseconds())
		}
		before = now.ttl
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	s.check("the lock was A's all the while", always && a.Err() == nil)
	s.check(fmt.Sprintf("it was renewed more than three times: %d times", renewals), renewals > 3)

	if err := a.Release(ctx); err != nil {
		return err
	}
	b, err := s.B.Mutex(name, holdfast.Fixed(length)).Lock(ctx)
	if err != nil {
		return err
	}
	defer b.Release(ctx)
	s.says("A", "released; B locks it once, for 1.2 s, without renewal")
	rose, before := false, length
	for {
		now, err := s.look(ctx, name)
		if err != nil {
			return err
		}
		if len(now.holders) == 0 {
			break
		}
		rose, before = rose || now.ttl > before, now.ttl
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	s.says("redis", "the key has expired")
	s.check("after the release nothing renews it", !rose)
	return nil
}

func runOut(ctx context.Context, s *stage) error {
	s.note("A takes a lease of 600 ms that is not renewed, and works for too long. B waits.")
	name := s.name("invoice:9")
	a, err := s.A.Mutex(name, holdfast.Fixed(600*time.Millisecond)).Lock(ctx)
	if err != nil {
		return err
	}
	s.says("A", "has it, token %d", a.Token())
	held := a.Context(ctx)
	next := later(ctx, s.B.Mutex(name).Lock)

	<-held.Done()
	s.says("A", "its context ends: %v", context.Cause(held))
	s.check("the cause matches ErrLost", errors.Is(context.Cause(held), holdfast.ErrLost))

	b := <-next
	if b.err != nil {
		return b.err
	}
	defer b.lease.Release(ctx)
	s.says("B", "has it, token %d", b.lease.Token())
	s.check("A was to stop before B could begin", a.Deadline().Before(b.at))
	s.check("B's token is greater", b.lease.Token() > a.Token())

	before, err := s.show(ctx, name)
	if err != nil {
		return err
	}
	err = a.Release(ctx)
	s.says("A", "Release: %v", err)
	s.check("the late release matches ErrLost", errors.Is(err, holdfast.ErrLost))
	after, err := s.look(ctx, name)
	s.check("B's lock is untouched", maps.Equal(after.holders, before.holders) && after.ttl > 0 && b.lease.Err() == nil)
	return err
}

func vanish(ctx context.Context, s *stage) error {
	s.note("C is a third process, with a lease of 1.5 s. It dies without releasing; B waits.")
	name := s.name("leader")
	c := s.client(s.Redis)
	defer c.Close()
	if _, err := c.Mutex(name, holdfast.Renewed(1500*time.Millisecond)).Lock(ctx); err != nil {
		return err
	}
	next := later(ctx, s.B.Mutex(name).Lock)
	if err := s.waiters(ctx, name); err != nil {
		return err
	}

	if err := c.Close(); err != nil {
		return err
	}
	died := time.Now()
	s.says("C", "is gone: nothing renews its lock any more, and nothing takes it away")
	left, err := s.show(ctx, name)
	if err != nil {
		return err
	}
	s.check("the lock is still there, since C's work may be too", len(left.holders) == 1 && left.ttl > 0)

	b := <-next
	if b.err != nil {
		return b.err
	}
	defer b.lease.Release(ctx)
	waited := b.at.Sub(died)
	s.says("B", "has it, %s after C has died", ms(waited))
	s.check(fmt.Sprintf("not before C's lease was over (%d ms), and not much later", left.ttl.Milliseconds()),
		waited > left.ttl-5*time.Millisecond && waited < left.ttl+2*time.Second)
	return nil
}
