// What a test requires of what is in Redis.

package holdfasttest

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
)

// settles is how long a state that a test requires may take to come: a release, or a clean-up, may be under way.
const settles = 5 * time.Second

// RequireHeld waits until somebody holds the name. If nobody holds it after 5 s, RequireHeld fails the
// test and ends it.
func (s *Server) RequireHeld(name string) {
	s.t.Helper()
	s.require(name, "held", func(i holdfast.Inspection) bool { return len(i.Holders) > 0 || i.Taken > 0 })
}

// RequireFree waits until nobody holds the name and nobody waits for it. If somebody holds the name or
// waits for it for 5 s, RequireFree fails the test and ends it. RequireFree does not see callers that
// wait for a Latch or a Semaphore.
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

// RequireNoLeases waits until no lease holds anything on the server, and nobody waits for anything. If
// something is held or somebody waits for 5 s, RequireNoLeases fails the test and ends it.
// RequireNoLeases does not see the permits of a Semaphore, which have no lease. It also does not see
// callers that wait for a Latch or a Semaphore.
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

// RequireTokensGrow fails the test and ends it, if one of the fencing tokens is not greater than the
// token before it. Give the tokens in the order in which they were granted.
func (s *Server) RequireTokensGrow(tokens ...int64) {
	s.t.Helper()
	for n := 1; n < len(tokens); n++ {
		if tokens[n] <= tokens[n-1] {
			s.t.Fatalf("holdfasttest: token %d follows %d", tokens[n], tokens[n-1])
		}
	}
}
