// These scenes are about holders that hear in time: that their lease is about to end, that somebody wants the lock,
// and that a newer one does.

package scenes

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

func timeToStop(ctx context.Context, s *stage) error {
	const lease, grace = 1500 * time.Millisecond, time.Second
	s.note("A's lease is fixed, with a grace of a second: A's context ends a second before the lock is free.")
	name := s.name("import")
	l, err := s.A.Mutex(name, holdfast.Fixed(lease), holdfast.Grace(grace)).Lock(ctx)
	if err != nil {
		return err
	}
	work := l.Context(ctx)
	<-work.Done()
	s.says("A", "has to stop: %v", context.Cause(work))
	_, err = s.B.Mutex(name).TryLock(ctx)
	s.check("nobody else has the lock while A stops", errors.Is(err, holdfast.ErrBusy))
	s.says("A", "has stopped: %v", l.Release(ctx))
	ended := time.Now()
	next, err := s.B.Mutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	s.check("then B has it, before the grace is over", time.Since(ended) < grace/2)
	return next.Release(ctx)
}

func hearsAtOnce(ctx context.Context, s *stage) error {
	s.note("A works for as long as nobody else wants to. B asks A for the lock, and A hears it by a message. Later the")
	s.note("lock is taken from A by force. A's next renewal would be in 10 s, and A knows at once.")
	m := s.A.Mutex(s.name("rebuild"), holdfast.Notified())
	l, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	defer l.Release(ctx)
	work, asked := l.Context(ctx), l.Asked()
	if err := sleep(ctx, 200*time.Millisecond); err != nil {
		return err
	}
	at := time.Now()
	if _, err := s.B.Mutex(m.Name()).Ask(ctx); err != nil {
		return err
	}
	<-asked
	s.says("A", "is asked, %s after B's call", ms(time.Since(at)))
	s.check("its lease goes on", work.Err() == nil)
	if err := sleep(ctx, 200*time.Millisecond); err != nil {
		return err
	}
	at = time.Now()
	if _, err := s.B.Mutex(m.Name()).ForceRelease(ctx); err != nil {
		return err
	}
	<-work.Done()
	s.says("A", "has lost the lock, %s after B's call", ms(time.Since(at)))
	s.check("the cause says so", errors.Is(context.Cause(work), holdfast.ErrLost))
	return nil
}

func newestWins(ctx context.Context, s *stage) error {
	s.note("A deploys a commit. Then B comes with a newer one: A's work ends, and B begins when A has stopped.")
	name := s.name("deploy")
	older, err := s.A.Mutex(name, holdfast.Supersede()).Lock(ctx)
	if err != nil {
		return err
	}
	work := older.Context(ctx)
	if err := sleep(ctx, 200*time.Millisecond); err != nil {
		return err
	}
	at := time.Now()
	came := later(ctx, s.B.Mutex(name, holdfast.Supersede()).Lock)
	<-work.Done()
	s.says("A", "is superseded, %s after B has come", ms(time.Since(at)))
	s.check("the cause says so", errors.Is(context.Cause(work), holdfast.ErrSuperseded))
	if err := sleep(ctx, 200*time.Millisecond); err != nil {
		return err
	}
	stopped := time.Now()
	s.says("A", "has stopped: %v", older.Release(ctx))
	newer := <-came
	if newer.err != nil {
		return newer.err
	}
	s.says("B", "has the lock, with a greater token")
	s.check("B waited for A to stop", newer.at.After(stopped) && newer.lease.Token() > older.Token())
	return newer.lease.Release(ctx)
}
