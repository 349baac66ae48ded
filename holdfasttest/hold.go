// What others hold, and how it ends.

package holdfasttest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

// HoldElsewhere has another process hold the lock of that name, as a Mutex or a FairMutex, until release is
// called, or the test ends. It waits for the lock if need be.
func (s *Server) HoldElsewhere(name string) (release func()) {
	s.t.Helper()
	l, err := s.operator.FairMutex(name).Lock(s.t.Context())
	if err != nil {
		s.t.Fatalf("holdfasttest: hold elsewhere: %v", err)
	}
	return func() {
		s.t.Helper()
		if err := l.Release(context.Background()); err != nil {
			s.t.Errorf("holdfasttest: release elsewhere: %v", err)
		}
	}
}

// Expire ends what is held at a name, as if the time of each holder were over. The holders find out when they
// renew; those who wait, when they ask.
func (s *Server) Expire(name string) { s.mini.Del(name) }

// Lose takes away what is held under the lease, and makes its holder know: the lease's Done is closed, and its
// Err matches ErrLost. The server must be up. If the Client has a WithNameMapper, the lease's name must be the
// name that stands in Redis.
func (s *Server) Lose(l *holdfast.Lease) {
	s.t.Helper()
	if err := s.lose(l); err != nil {
		s.t.Fatalf("holdfasttest: lose: %v", err)
	}
}

func (s *Server) lose(l *holdfast.Lease) error {
	s.Expire(l.Name())
	if err := l.Extend(context.Background(), time.Second); !errors.Is(err, holdfast.ErrLost) {
		return errors.Join(errors.New("the lease goes on, or has ended otherwise"), err)
	}
	return nil
}
