// These tests show what happens when the network loses, delays or repeats what elections send.

package leader_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
)

// Requests run, but their replies are lost; or they run late, also later than the lease, or twice. Two
// never lead at once, tokens grow, everybody leads, no Run ends, and nothing is left. The stage watches
// that.
func TestLostReplies(t *testing.T) {
	for what, tc := range map[string]struct {
		fault redistest.Fault
		lease time.Duration
	}{
		"closed after":         {redistest.CloseAfterExec, 30 * time.Second},
		"closed before":        {redistest.DropBefore, 30 * time.Second},
		"half":                 {redistest.HalfReply, 30 * time.Second},
		"twice":                {redistest.Duplicate, 30 * time.Second},
		"late":                 {redistest.Delay(600 * time.Millisecond), 30 * time.Second},
		"very late":            {redistest.Delay(1300 * time.Millisecond), 30 * time.Second},
		"later than the lease": {redistest.Delay(1300 * time.Millisecond), time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				var scripts atomic.Int64
				var all []*candidate
				for i, id := range []string{"a", "b", "c", "d"} {
					c := s.candidate(id, leader.Priority(i%2), leader.MaxTerm(1200*time.Millisecond), leader.Lease(tc.lease))
					c.p.Net.OnCommand(func(cmd redistest.Command) redistest.Fault {
						if cmd.Name == "EVALSHA" && scripts.Add(1)%5 == 0 {
							return tc.fault
						}
						return redistest.Pass
					})
					all = append(all, c.campaign(func(ctx context.Context, _ *leader.Term) error {
						<-ctx.Done()
						time.Sleep(10 * time.Millisecond)
						return nil
					}))
				}
				observer := s.watch(s.candidate("observer"))
				s.At(20 * time.Second)
				for _, c := range all {
					c.stop(nil)
				}
				terms := 0
				for _, c := range all {
					<-c.done
					world.WantErr(t, c.err, context.Canceled)
					terms += c.terms
				}
				for _, c := range all {
					c.p.Net.OnCommand(nil)
				}
				time.Sleep(7 * time.Second) // time for the clean-ups
				synctest.Wait()
				observer.end()
				observer.neverWentBack()
				if terms < 5 || all[1].terms < 1 || all[3].terms < 1 || len(observer.infos) < terms/2 {
					t.Errorf("%d terms: %d, %d, %d, %d; %d seen",
						terms, all[0].terms, all[1].terms, all[2].terms, all[3].terms, len(observer.infos))
				}
			})
		})
	}
}

// Every request to Redis that a campaign makes may be the one that its context ends in. Nothing is
// left behind then, and the next leads at once.
func TestACampaignThatIsCancelledLeavesNothing(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for _, script := range []string{"leader enter", "leader tell"} {
			play(t, func(t *testing.T, s *stage) {
				a := s.candidate("a")
				a.p.On(script, n, redistest.CloseAfterExec)
				if n == 1 {
					a.p.On(script, n, redistest.Delay(time.Second))
				}
				b := s.candidate("b").campaign(untilOver)
				a.campaign(untilOver)
				time.Sleep(time.Duration(n) * 300 * time.Millisecond)
				a.retire()
				s.At(10 * time.Second)
				if got := s.waiting(b); got != "" {
					t.Errorf("waiting: %s", got)
				}
				b.retire()
				time.Sleep(2 * time.Second)
				s.wantNobody(b)
				c := s.candidate("c")
				c.p.On(script, 1, redistest.Delay(time.Second)) // nobody leads: it is granted meanwhile
				c.campaign(untilOver)
				c.retire()
				time.Sleep(3 * time.Second)
				synctest.Wait()
				if n := s.RDB.Exists(t.Context(), name, recordKey, namesKey, queueKey).Val(); n != 0 {
					t.Errorf("%d keys are left", n)
				}
			})
		}
	}
}

// A lead is granted, and the answer comes when its lease is over. The campaign goes on.
func TestALeadThatIsGrantedTooLate(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		c := s.candidate("a", leader.Lease(500*time.Millisecond))
		c.p.On("leader enter", 1, redistest.DelayReply(900*time.Millisecond))
		led := make(chan struct{}, 1)
		c.campaign(func(ctx context.Context, _ *leader.Term) error {
			led <- struct{}{}
			<-ctx.Done()
			return nil
		})
		s.At(10 * time.Second)
		select {
		case <-led:
		default:
			t.Error("it never leads")
		}
		c.stop(nil)
		<-c.done
	})
}
