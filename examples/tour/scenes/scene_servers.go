// These scenes are about several servers: all of several locks, and a majority.

package scenes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
	"github.com/holdfast-go/holdfast/quorum"
)

func allOfThree(ctx context.Context, s *stage) error {
	s.note("A room, a projector and a driver, booked together or not at all. Each lock is on a")
	s.note("server of its own; these are embedded.")
	servers, clients, stop, err := s.several(3)
	if err != nil {
		return err
	}
	defer stop()
	var locks, reversed []holdfast.Locker
	for i, thing := range []string{"room", "projector", "driver"} {
		lock := clients[i].Mutex(thing)
		locks, reversed = append(locks, lock), append([]holdfast.Locker{lock}, reversed...)
	}
	ours, theirs := holdfast.NewMultiLock(locks...), holdfast.NewMultiLock(reversed...)

	l, err := ours.Lock(ctx)
	if err != nil {
		return err
	}
	s.says("A", "has all three, tokens %d", l.Tokens())
	_, err = theirs.TryLock(ctx)
	s.says("B", "names them the other way round: %v", err)
	s.check("B is refused", errors.Is(err, holdfast.ErrBusy))
	if err := l.Release(ctx); err != nil {
		return err
	}

	servers[1].Stop()
	s.says("redis", "the projector's server stops")
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err = ours.Lock(short)
	s.says("A", "after 300 ms: %v", err)
	s.check("two of three are no booking", errors.Is(err, context.DeadlineExceeded))
	gaveUp := time.Now()
	driver, err := locks[2].Lock(ctx)
	if err != nil {
		return err
	}
	took := time.Since(gaveUp)
	s.says("B", "has the driver alone, %s later", ms(took))
	s.check("what A had taken was given back, long before its lease of 30 s was over", took < 15*time.Second)
	if err := errors.Join(driver.Release(ctx), servers[1].Restart()); err != nil {
		return err
	}
	if l, err = ours.Lock(ctx); err != nil {
		return err
	}
	s.says("A", "the server is back: A has all three, tokens %d", l.Tokens())
	return l.Release(ctx)
}

func quorumOfFive(ctx context.Context, s *stage) error {
	s.note("One lock on five independent servers, with a lease of 3 s: who has three has it.")
	servers, clients, stop, err := s.several(5)
	if err != nil {
		return err
	}
	defer stop()
	lock := holdfast.NewQuorum("invoices", clients, holdfast.Renewed(3*time.Second))
	l, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	s.says("A", "has it from %d servers, token %d", len(l.Tokens()), l.Token())
	before := l.Token()
	_ = l.Release(ctx) // if a server is slow to answer, the release goes on in the background

	servers[0].Stop()
	servers[1].Stop()
	s.says("redis", "two of five stop")
	if l, err = lock.Lock(ctx); err != nil {
		return err
	}
	s.says("A", "has it from %d servers, token %d", len(l.Tokens()), l.Token())
	s.check("three of five are enough, and the token is greater", len(l.Tokens()) == 3 && l.Token() > before)

	return s.threeStopped(ctx, servers[2], lock, l)
}

// threeStopped stops a third server while the lock is held, and starts it again.
func (s *stage) threeStopped(ctx context.Context, third *embedded.Server, lock *quorum.Quorum, l *quorum.Lease) error {
	third.Stop()
	stopped := time.Now()
	s.says("redis", "a third one stops")
	<-l.Done()
	s.says("A", "is told %s later: %v", ms(time.Since(stopped)), l.Err())
	s.check("the holder is told that it is lost", errors.Is(l.Err(), holdfast.ErrLost))
	_, err := lock.TryLock(ctx)
	s.says("B", "TryLock: %v", err)
	s.check("two of five are not enough", errors.Is(err, holdfast.ErrNoQuorum))

	if err := third.Restart(); err != nil {
		return err
	}
	before := l.Token()
	if l, err = lock.Lock(ctx); err != nil {
		return err
	}
	s.says("B", "the third is back, with its keys: B has it, token %d", l.Token())
	s.check(fmt.Sprintf("the token is greater than that of the lost hold, by %d", l.Token()-before), l.Token() > before)
	_ = l.Release(ctx)
	return nil
}
