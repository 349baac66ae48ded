// What others hold, and how it ends.

package holdfasttest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// HoldElsewhere makes another process hold the lock of that name, as a Mutex or a FairMutex, until release is called or
// the test ends. If the lock is held, HoldElsewhere waits for it.
func (s *Server) HoldElsewhere(name string) (release func()) {
	s.t.Helper()
	l, err := s.operator.FairMutex(name).Lock(s.t.Context())
	if err != nil {
		s.t.Fatalf("holdfasttest: hold elsewhere: %v", err)
	}
	return func() {
		s.t.Helper()
		if err := l.Release(context.Background()); err != nil && !errors.Is(err, holdfast.ErrLost) {
			s.t.Errorf("holdfasttest: release elsewhere: %v", err)
		}
	}
}

// Expire ends all holds on a name in Redis, in the way that a lease ends at its time: locks, leads, leased permits,
// slots and memberships of shards. Holders notice it when they renew, and waiters when they ask. Expire does nothing to
// a Once or a Barrier. It also does nothing to what a Client with a WithKeyPrefix holds.
func (s *Server) Expire(name string) {
	permits, err := keys.Space("").ForPermits(name)
	numbers, err2 := keys.Space("").ForSlots(name)
	shared, err3 := keys.Space("").ForShards(name)
	if errors.Join(err, err2, err3) != nil || !s.expire(permits.Taken) && !s.expire(numbers.Taken) && !s.expire(shared.Members) {
		s.mini.Del(name)
	}
}

// expire ends the times that a sorted set has as scores, and reports whether there is such a set. Other scores of
// slots are below 0, or above each time.
func (s *Server) expire(taken string) bool {
	const beyond = 1 << 52
	members, _ := s.mini.ZMembers(taken)
	for _, member := range members {
		if until, _ := s.mini.ZScore(taken, member); until >= 0 && until < beyond {
			_, _ = s.mini.ZAdd(taken, 0, member) // since 1970 its time is over
		}
	}
	return len(members) > 0
}

// takeAway takes away what an owner holds at a name: permits, from all of their holders.
func (s *Server) takeAway(name, owner string) {
	fields, err := s.mini.HKeys(name)
	if err != nil {
		s.Expire(name)
		return
	}
	others := false
	for _, field := range fields {
		switch {
		case field == owner, strings.HasPrefix(field, owner+":"):
			s.mini.HDel(name, field)
		case field != "mode":
			others = true
		}
	}
	if !others {
		s.mini.Del(name) // what is left of an RWMutex
	}
}

// Lose removes in Redis what the lease holds, and notifies the holder: the lease's Done is closed, and its Err matches
// ErrLost. If the lease is on permits or a slot, all holders of permits or slots of that name lose them. The server
// must be up. If the Client has a WithNameMapper, the lease's name must be the name that is stored in Redis. The Client
// must have no WithKeyPrefix.
func (s *Server) Lose(l *holdfast.Lease) {
	s.t.Helper()
	if err := s.lose(l); err != nil {
		s.t.Fatalf("holdfasttest: lose: %v", err)
	}
}

func (s *Server) lose(l *holdfast.Lease) error {
	s.takeAway(l.Name(), l.Owner().String())
	if err := l.Extend(context.Background(), time.Second); !errors.Is(err, holdfast.ErrLost) {
		return errors.Join(errors.New("the lease goes on, or has ended otherwise"), err)
	}
	return nil
}
