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

// HoldElsewhere makes another process hold the lock of that name, until the test ends or calls release.
// The lock may be a Mutex or a FairMutex. If somebody holds the lock already, HoldElsewhere waits until
// the lock is free.
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

// Expire ends all holds on a name in Redis, as if their leases had come to their ends. It ends holds of
// locks, leads, leased permits, slots and memberships of shards. A holder notices the end when it next
// renews its lease. A waiter notices the end when it next asks Redis. Expire does nothing to a Once or a
// Barrier, and nothing to the holds of a Client with WithKeyPrefix.
func (s *Server) Expire(name string) {
	s.expireListed(name)
	if s.mini.Type(name) == "hash" {
		s.mini.Del(name)
	}
}

// expireListed ends what is listed beside a name: leased permits, slots, and memberships of shards.
func (s *Server) expireListed(name string) {
	permits, _ := keys.Space("").ForPermits(name) // none, where the name can have none
	numbers, _ := keys.Space("").ForSlots(name)
	shared, _ := keys.Space("").ForShards(name)
	for _, taken := range []string{permits.Taken, numbers.Taken, shared.Members} {
		s.expire(taken)
	}
}

// expire ends the times that a sorted set has as scores. Other scores of slots are below 0, or above each time.
func (s *Server) expire(taken string) {
	const beyond = 1 << 52
	members, _ := s.mini.ZMembers(taken)
	for _, member := range members {
		if until, _ := s.mini.ZScore(taken, member); until >= 0 && until < beyond {
			_, _ = s.mini.ZAdd(taken, 0, member) // since 1970 its time is over
		}
	}
}

// takeAway takes away what an owner holds at a name: permits, from all of their holders.
func (s *Server) takeAway(name, owner string) {
	fields, _ := s.mini.HKeys(name)
	found, others := false, false
	for _, field := range fields {
		switch {
		case field == owner, strings.HasPrefix(field, owner+":"):
			found = true
			s.mini.HDel(name, field)
		case field != "mode":
			others = true
		}
	}
	switch {
	case !found:
		s.expireListed(name)
	case !others:
		s.mini.Del(name) // what is left of an RWMutex
	}
}

// Lose removes from Redis what the lease l holds, and notifies the holder: the Done channel of l is
// closed, and the Err of l matches ErrLost. If l is a lease on permits or on a slot, all holders of
// permits or slots of that name lose them. The server must be up. If the Client of l has WithNameMapper,
// the Name of l must be the name that is stored in Redis. The Client of l must not have WithKeyPrefix.
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
