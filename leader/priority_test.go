// These tests show in which order candidates lead, and how leaders are asked to resign.

package leader_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
)

// waiting returns the candidates that wait, as "identity priority", in order.
func (s *stage) waiting(c *candidate) string {
	s.T.Helper()
	synctest.Wait()
	all, err := c.Candidates(s.T.Context())
	if err != nil {
		s.T.Fatal(err)
	}
	words := make([]string, 0, len(all))
	for _, each := range all {
		words = append(words, fmt.Sprintf("%s %d", each.Identity, each.Priority))
		if each.Owner.IsZero() {
			s.T.Errorf("%s has no owner", each.Identity)
		}
	}
	return strings.Join(words, ", ")
}

func TestCandidatesLeadByPriorityAndThenInOrder(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		first := s.candidate("first").campaign(untilOver)
		shared := s.Process() // several candidates of one process keep to the order too
		var all []*candidate
		for i, p := range []int{0, -100, 7, 0, 100, 7, -3, 0} {
			c := s.candidate(fmt.Sprint(i), leader.Priority(p))
			if i%2 == 1 {
				c = s.candidateOf(shared, fmt.Sprint(i), leader.Priority(p))
			}
			all = append(all, c.campaign(untilOver))
			s.At(time.Duration(i+1) * 700 * time.Millisecond)
		}
		s.At(2 * time.Minute)
		s.RDB.Del(t.Context(), recordKey) // the leader's next poll writes the record again, with the same token and time
		s.At(2*time.Minute + 1250*time.Millisecond)
		world.Equal(t, s.waiting(first), "4 100, 2 7, 5 7, 0 0, 3 0, 7 0, 6 -3, 1 -100", "waiting: %s")
		world.Equal(t, s.RDB.HLen(t.Context(), namesKey).Val(), 8, "%d notes")
		s.wantLeader(first, all...) // nobody preempts
		first.retire()
		for _, i := range []int{4, 2, 5, 0, 3, 7, 6, 1} {
			at := s.Now()
			s.wantLeader(all[i])
			if _, began, _, _ := all[i].seen(); began != at {
				t.Errorf("%d leads at %v, the lead was free at %v", i, began, at)
			}
			all[i].retire()
		}
		world.Equal(t, s.led(), "[first 4 2 5 0 3 7 6 1]", "led: %s")
	})
}

func TestAPreemptingCandidateTakesTheLeadOfALowerPriority(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		low := s.candidate("low").campaign(func(ctx context.Context, _ *leader.Term) error {
			<-ctx.Done()
			time.Sleep(2 * time.Second) // it is let finish
			return nil
		})
		s.At(20 * time.Second)
		equal := s.candidate("equal", leader.Preempt()).campaign(untilOver)
		s.At(30 * time.Second)
		s.wantLeader(low, equal)
		high := s.candidate("high", leader.Priority(1), leader.Preempt()).campaign(untilOver)
		if low.IsLeader() || high.IsLeader() {
			t.Errorf("leads: low %v, high %v", low.IsLeader(), high.IsLeader())
		}
		s.At(32 * time.Second)
		s.wantLeader(high, low, equal)
		_, _, ended, why := low.seen()
		if ended != 30*time.Second || !errors.Is(why, holdfast.ErrResigned) || !strings.Contains(why.Error(), "high") {
			t.Errorf("low's term ended at %v with %v", ended, why)
		}
		s.At(3 * time.Minute)
		world.Equal(t, s.led(), "[low high]", "led: %s")
		retire(high, equal, low)
	})
}

// A candidate with Preempt comes before the leader has said who it is, and waits behind another of its process. It asks
// the leader all the same. The one with the higher of their priorities leads.
func TestACandidateThatPreemptsAsksBehindAnotherOfItsProcess(t *testing.T) {
	by := func(priority int) []leader.Option {
		return []leader.Option{leader.Priority(priority), leader.Preempt()}
	}
	for _, tc := range []struct {
		what        string
		leads       int // the leader's priority
		first, last []leader.Option
		next        string
	}{
		{"that does not preempt", 0, []leader.Option{leader.Priority(5)}, by(3), "first"},
		{"that preempts", 7, by(5), by(9), "last"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				low := s.candidate("low", leader.Priority(tc.leads))
				s.candidateOf(low.p, "warm").campaign(untilOver).retire()
				low.p.On("leader tell", 1, redistest.Delay(500*time.Millisecond))
				low.campaign(untilOver)
				p := s.Process()
				next := s.candidateOf(p, "first", tc.first...).campaign(untilOver)
				other := s.candidateOf(p, "last", tc.last...).campaign(untilOver)
				if tc.next == "last" {
					next, other = other, next
				}
				s.At(3 * time.Second)
				s.wantLeader(next, low, other)
				retire(next, other, low)
			})
		})
	}
}

// Nothing needs a message: a leader that hears none is asked all the same.
func TestALeaderThatHearsNothingResignsAtItsNextPoll(t *testing.T) {
	for by, ask := range map[string]func(s *stage) *candidate{
		"high": func(s *stage) *candidate {
			return s.candidate("high", leader.Priority(1), leader.Preempt()).campaign(untilOver)
		},
		"operator": func(s *stage) *candidate {
			c := s.candidate("next").campaign(untilOver)
			redistest.Check(s.T, s.candidate("operator").RequestResign(s.T.Context()))
			return c
		},
	} {
		t.Run(by, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				a := s.candidate("a").campaign(untilOver)
				s.At(time.Minute)
				a.p.Mute()
				next := ask(s)
				s.At(time.Minute + 1250*time.Millisecond)
				next.ledFrom(time.Minute, time.Minute+1250*time.Millisecond)
				if _, _, _, why := a.seen(); !errors.Is(why, holdfast.ErrResigned) || !strings.Contains(why.Error(), by) {
					t.Errorf("its term ended with %v", why)
				}
				a.p.Unmute()
				retire(next, a)
			})
		})
	}
}

func TestRequestResignAsksTheLeaderThatItFinds(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		operator := s.candidate("operator")
		world.WantErr(t, operator.RequestResign(t.Context()), holdfast.ErrNoLeader)
		a, b := s.two()
		s.At(10 * time.Second)
		// The request is sent twice, or its reply is lost and it is sent again: b is not asked too.
		for i, fault := range []redistest.Fault{redistest.Duplicate, redistest.CloseAfterExec} {
			operator.p.On("leader ask", 1, fault)
			redistest.Check(t, operator.RequestResign(t.Context()))
			s.At(time.Duration(i+2) * 10 * time.Second)
		}
		world.Equal(t, s.led(), "[a b a]", "led: %s")
		_, _, ended, why := b.seen()
		if ended != 20*time.Second || !strings.Contains(why.Error(), "asked by operator") {
			t.Errorf("ended at %v with %v", ended, why)
		}
		retire(a, b)
		world.WantErr(t, operator.RequestResign(t.Context()), holdfast.ErrNoLeader)
	})
}
