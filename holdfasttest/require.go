// What a test requires of what is in Redis.

package holdfasttest

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
)

// settles is how long a state that a test requires may take to come: a release, or a clean-up, may be under way.
const settles = 5 * time.Second

// RequireHeld ends the test as failed if nobody holds the name within 5 s.
func (s *Server) RequireHeld(name string) {
	s.t.Helper()
	s.require(name, "held", func(i holdfast.Inspection) bool { return len(i.Holders) > 0 || i.Taken > 0 })
}

// RequireFree ends the test as failed if, for 5 s, somebody holds the name or waits for it. It does not see the waiters
// of a Latch or a Semaphore.
func (s *Server) RequireFree(name string) {
	s.t.Helper()
	s.require(name, "free", func(i holdfast.Inspection) bool { return !busy(i) })
}

// busy reports whether somebody holds or waits.
func busy(i holdfast.Inspection) bool { return len(i.Holders) > 0 || i.Taken > 0 || i.Waiters > 0 }

func (s *Server) require(name, what string, is func(holdfast.Inspection) bool) {
	s.t.Helper()
	var last holdfast.Inspection
	for until := time.Now().Add(settles); ; time.Sleep(10 * time.Millisecond) {
		i, err := s.operator.Inspect(context.Background(), name)
		if err != nil {
			s.t.Fatalf("holdfasttest: %v", err)
		}
		if is(i) {
			return
		}
		if last = i; time.Now().After(until) {
			s.t.Fatalf("holdfasttest: not %s: %v", what, last)
		}
	}
}

// RequireNoLeases ends the test as failed if, for 5 s, something on the server is held by a lease, or somebody waits.
// It does not see the permits of a Semaphore, which have no lease, and the waiters of a Latch or a Semaphore.
func (s *Server) RequireNoLeases() {
	s.t.Helper()
	var left []holdfast.Inspection
	for until := time.Now().Add(settles); ; time.Sleep(10 * time.Millisecond) {
		left = nil
		for i, err := range s.operator.InspectAll(context.Background(), "") {
			if err != nil {
				s.t.Fatalf("holdfasttest: %v", err)
			}
			if busy(i) {
				left = append(left, i)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(until) {
			s.t.Fatalf("holdfasttest: still held or waited for: %v", left)
		}
	}
}

// RequireTokensGrow ends the test as failed if a fencing token is not greater than the token before it. Give the tokens
// in the order of their grants.
func (s *Server) RequireTokensGrow(tokens ...int64) {
	s.t.Helper()
	for n := 1; n < len(tokens); n++ {
		if tokens[n] <= tokens[n-1] {
			s.t.Fatalf("holdfasttest: token %d follows %d", tokens[n], tokens[n-1])
		}
	}
}
