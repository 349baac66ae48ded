// These tests show how candidates come to lead, how their terms end, and what happens when the network loses, delays or
// repeats what elections send.

package leader_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
)

// A leader that is shut down hands over at once: the next leads without any time passing.
func TestAResignationHandsOverAtOnce(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		a, b := s.two()
		s.At(41 * time.Second)
		a.retire()
		b.ledFrom(41*time.Second, 41*time.Second)
		s.At(50 * time.Second)
		term, _, _, _ := b.seen()
		a2 := s.candidate("a2").campaign(untilOver)
		term.Resign()
		a2.ledFrom(50*time.Second, 50*time.Second)
		if _, _, ended, why := b.seen(); ended != 50*time.Second || !errors.Is(why, holdfast.ErrResigned) {
			t.Errorf("b's term ended at %v with %v", ended, why)
		}
		a2.retire()
		s.wantLeader(b) // which campaigned again
		b.retire()
	})
}

// If the next candidate has died with the leader, the one after it leads when the place has lapsed.
func TestACandidateThatDiedIsPassedOver(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		a, b := s.two()
		c := s.candidate("c").campaign(untilOver)
		s.At(40 * time.Second)
		b.p.Unplug(true)
		synctest.Wait()
		a.retire()
		s.At(43 * time.Second)
		c.ledFrom(40*time.Second, 42500*time.Millisecond)
		b.p.Unplug(false)
		s.At(50 * time.Second)
		s.wantLeader(c, b)
		retire(c, b)
	})
}

// The lead is given up only when the work has returned, however its term has ended.
func TestTheLeadIsKeptUntilTheWorkReturns(t *testing.T) {
	for what, end := range map[string]func(c *candidate, term *leader.Term){
		"shut down": func(c *candidate, _ *leader.Term) { c.stop(nil) },
		"resigned":  func(_ *candidate, term *leader.Term) { term.Resign() },
		"asked":     func(c *candidate, _ *leader.Term) { _ = c.RequestResign(context.Background()) },
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				stubborn := func(ctx context.Context, _ *leader.Term) error {
					<-ctx.Done()
					time.Sleep(20 * time.Second) // far longer than the lease
					return errors.New("at last")
				}
				a := s.candidate("a", leader.Lease(3*time.Second)).campaign(stubborn)
				b := s.candidate("b").campaign(untilOver)
				s.At(10 * time.Second)
				term, _, _, _ := a.seen()
				end(a, term)
				s.At(11 * time.Second)
				if a.IsLeader() || b.IsLeader() {
					t.Errorf("leads: a %v, b %v", a.IsLeader(), b.IsLeader())
				}
				if err := a.Check(time.Second - time.Millisecond); err == nil || b.Check(0) != nil || a.Check(time.Second+time.Millisecond) != nil {
					t.Errorf("Check: %v", err)
				} else {
					namesItOnce(t, a, err)
				}
				s.At(29 * time.Second)
				if b.IsLeader() {
					t.Error("b leads while the work of a goes on")
				}
				s.At(30 * time.Second)
				b.ledFrom(30*time.Second, 30*time.Second)
				if a.Check(0) != nil {
					t.Errorf("Check: %v", a.Check(0))
				}
				a.stop(nil)
				<-a.done
				b.retire()
			})
		})
	}
}

// namesItOnce fails the test unless the error says once of which election it is.
func namesItOnce(t *testing.T, c *candidate, err error) {
	t.Helper()
	world.Equal(t, strings.Count(err.Error(), strconv.Quote(c.Name())), 1, "%d names in %q", err)
}

// A work that goes on after its term was lost cannot keep others out, but it is told, and found.
func TestAWorkThatOutlivesItsLossIsNamed(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		var log redistest.Log
		p := s.Process(holdfast.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		a := s.candidateOf(p, "a", leader.Lease(10*time.Second)).campaign(func(ctx context.Context, _ *leader.Term) error {
			<-ctx.Done()
			time.Sleep(40 * time.Second)
			return nil
		})
		b := s.candidate("b").campaign(untilOver)
		s.At(10 * time.Second)
		p.Unplug(true)
		s.At(21 * time.Second)
		s.wantLeader(b)
		if a.IsLeader() {
			t.Error("a says that it leads, after its loss")
		}
		p.Unplug(false)
		err := a.Check(10 * time.Millisecond)
		world.WantErr(t, err, holdfast.ErrLost)
		namesItOnce(t, a, err)
		synctest.Wait()
		if strings.Contains(log.String(), "does not return") {
			t.Error("the log names it too soon")
		}
		for _, at := range []time.Duration{31 * time.Second, time.Minute} {
			s.At(at)
			if got := log.String(); strings.Count(got, "does not return") != 1 || !strings.Contains(got, "identity=a") {
				t.Errorf("at %v the log does not name it once:\n%s", at, got)
			}
		}
		retire(a, b)
	})
}

func TestWhatTheWorkReturnsDecides(t *testing.T) {
	boom := errors.New("boom")
	play(t, func(t *testing.T, s *stage) {
		a := s.candidate("a").campaign(func(context.Context, *leader.Term) error { return nil })
		<-a.done
		if a.err != nil || a.terms != 1 {
			t.Errorf("nil: %v after %d terms", a.err, a.terms)
		}
		s.wantNobody(a)

		failed := 0
		b := s.candidate("b").campaign(func(context.Context, *leader.Term) error {
			if failed++; failed < 4 {
				return boom
			}
			return nil
		})
		<-b.done
		if b.err != nil || b.terms != 4 {
			t.Errorf("an error: %v after %d terms", b.err, b.terms)
		}
		world.Within(t, "three pauses", s.Now(), 2700*time.Millisecond, 3*time.Second)

		c := s.candidate("c").campaign(func(ctx context.Context, _ *leader.Term) error {
			<-ctx.Done()
			return boom
		})
		c.stop(nil)
		<-c.done
		world.WantErr(t, c.err, context.Canceled, boom)

		d := s.candidate("d").campaign(func(ctx context.Context, term *leader.Term) error {
			term.Resign()
			return nil // the term is over, so this is no resignation for good
		})
		time.Sleep(2 * time.Second)
		d.stop(nil)
		<-d.done
		world.WantErr(t, d.err, context.Canceled)
		if d.terms != 3 { // not a storm of them
			t.Errorf("after Resign and nil: %d terms in 2 s", d.terms)
		}
	})
}

func TestAWorkThatPanicsGivesTheLeadUp(t *testing.T) {
	for what, leave := range map[string]func(){"panic": func() { panic("boom") }, "exit": runtime.Goexit} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				a := s.candidate("a")
				done := make(chan any)
				go func() {
					defer func() { done <- recover() }()
					_ = a.Run(t.Context(), func(context.Context, *leader.Term) error { leave(); return nil })
				}()
				if got := <-done; what == "panic" && got != "boom" {
					t.Errorf("recovered %v", got)
				}
				s.wantNobody(a)
				a.campaign(untilOver) // which can run again
				s.wantLeader(a)
				a.retire()
			})
		})
	}
}

// Each term ends after MaxTerm, or up to a tenth sooner, by chance, and the others lead in turn.
func TestMaxTermEndsTerms(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		const most = 20 * time.Second
		var all []*candidate
		for _, id := range []string{"a", "b", "c"} {
			all = append(all, s.candidate(id, leader.MaxTerm(most)).campaign(untilOver))
		}
		s.At(6*most + time.Second/2)
		lengths := map[time.Duration]bool{}
		for i, began := range s.began[1:] {
			length := began - s.began[i]
			world.Within(t, "a term", length, most*9/10, most)
			lengths[length] = true
		}
		if got := s.led(); !strings.HasPrefix(got, "[a b c a b c a") || len(lengths) < 3 {
			t.Errorf("led: %s, for %v", got, lengths)
		}
		_, _, _, why := all[2].seen()
		world.WantErr(t, why, holdfast.ErrResigned)
		retire(all...)
	})
}

func TestAWorkThatGivesNoSignOfLifeLosesItsTerm(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		a := s.candidate("a").campaign(func(ctx context.Context, term *leader.Term) error {
			for range 10 {
				term.Alive(5 * time.Second)
				time.Sleep(4 * time.Second)
			}
			<-ctx.Done()
			return nil
		})
		b := s.candidate("b").campaign(func(ctx context.Context, term *leader.Term) error {
			term.Alive(time.Second)
			term.Alive(0)
			<-ctx.Done()
			return nil
		})
		s.At(time.Minute)
		_, _, ended, why := a.seen()
		if ended != 41*time.Second || !errors.Is(why, holdfast.ErrResigned) || !strings.Contains(why.Error(), "no sign of life") {
			t.Errorf("ended at %v with %v", ended, why)
		}
		s.wantLeader(b, a)
		retire(a, b)
	})
}

// A leader whose hold is taken away hears of it by its next poll, not only by its next renewal, and campaigns again.
func TestALeadThatIsTakenAwayIsLost(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		a, b := s.two()
		s.At(12 * time.Second)
		s.forced = true
		if ok, err := b.p.Mutex(name).ForceRelease(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		s.At(45 * time.Second)
		_, _, ended, why := a.seen()
		world.WantErr(t, why, holdfast.ErrLost)
		world.Within(t, "its term ended", ended, 12*time.Second, 13400*time.Millisecond)
		s.wantLeader(b, a)
		retire(b, a)
	})
}

func TestARunThatCannotBe(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		p := s.Process()
		never := func(context.Context, *leader.Term) error { t.Error("it leads"); return nil }
		for what, e := range map[string]*leader.Election{
			"no name":             p.Leader(""),
			"a reserved name":     p.Leader("holdfast_leader:{x}"),
			"too high a priority": p.Leader(name, leader.Priority(leader.MaxPriority+1)),
			"too low a priority":  p.Leader(name, leader.Priority(-leader.MaxPriority-1)),
			"a long identity":     p.Leader(name, leader.Identity(strings.Repeat("x", leader.MaxIdentity+1))),
			"a long value":        p.Leader(name, leader.Value(strings.Repeat("x", leader.MaxValue+1))),
			"a short term":        p.Leader(name, leader.MaxTerm(time.Millisecond)),
			"a short lease":       p.Leader(name, leader.Lease(time.Millisecond)),
			"no client":           new(leader.Election),
		} {
			_, looked := e.Leader(t.Context())
			_, listed := e.Candidates(t.Context())
			for i, err := range []error{e.Run(t.Context(), never), looked, listed, e.RequestResign(t.Context()), e.Check(0)} {
				if !errors.Is(err, holdfast.ErrBadArgument) {
					t.Errorf("%s: call %d: %v", what, i, err)
				}
			}
			for range e.Observe(t.Context()) {
				t.Errorf("%s: it observes", what)
			}
		}
		world.WantErr(t, p.Leader(name).Run(t.Context(), nil), holdfast.ErrBadArgument)

		a := s.candidate("a").campaign(untilOver)
		world.WantErr(t, a.Run(t.Context(), never), holdfast.ErrBadArgument)
		s.wantLeader(a)
		a.retire()

		s.RDB.Set(t.Context(), recordKey, "precious", time.Minute)
		world.WantErr(t, p.Leader(name).Run(t.Context(), never), holdfast.ErrWrongType)
		s.RDB.Del(t.Context(), recordKey)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		world.WantErr(t, p.Leader(name).Run(ctx, never), context.Canceled)
	})
}

// A term whose beginning cannot be told does not begin, and gives the lead up.
func TestATermThatCannotBeToldDoesNotBegin(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		a := s.candidate("a")
		a.p.Each(func(run world.Sending) redistest.Fault {
			if run.Script == "leader tell" {
				return redistest.DropBefore
			}
			return redistest.Pass
		})
		a.campaign(untilOver)
		s.At(20 * time.Second)
		world.Equal(t, s.led(), "[]", "led: %s")
		s.wantNobody(s.candidate("b"))
		a.p.Each(nil)
		s.At(40 * time.Second)
		s.wantLeader(a)
		a.retire()
	})
}

// The lead counts only if as many replicas have it as the option says, or else the Client's.
func TestALeadCountsOnlyIfReplicasHaveIt(t *testing.T) {
	for what, tc := range map[string]struct {
		client  []holdfast.Option
		options []leader.Option
		waits   bool
	}{
		"by the Client":       {[]holdfast.Option{holdfast.WithReplicas(1)}, nil, true},
		"by the option":       {nil, []leader.Option{leader.Replicas(1)}, true},
		"not, by the option":  {[]holdfast.Option{holdfast.WithReplicas(1)}, []leader.Option{leader.Replicas(0)}, false},
		"nobody asks for any": {nil, nil, false},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				var have atomic.Int64 // so many replicas have the lead
				a := s.candidateOf(s.Process(tc.client...), "a", tc.options...)
				a.p.Net.OnCommand(func(c redistest.Command) redistest.Fault {
					if c.Name == "WAIT" {
						return redistest.ReplyNumber(have.Load())
					}
					return a.p.Observe(c)
				})
				a.campaign(untilOver)
				s.At(3 * time.Second)
				if a.IsLeader() == tc.waits {
					t.Errorf("leads: %v", a.IsLeader())
				}
				have.Store(1)
				s.At(5 * time.Second)
				s.wantLeader(a)
				a.retire()
			})
		})
	}
}

// Redis refuses for six seconds what an operator can mend. Each candidate campaigns again, and one leads soon
// after that.
func TestRunOutlastsWhatAnOperatorMends(t *testing.T) {
	for _, refusal := range []string{
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
		"OOM command not allowed when used memory > 'maxmemory'.",
		"NOPERM User a has no permissions to run the 'evalsha' command",
		"WRONGPASS invalid username-password pair or user is disabled.",
	} {
		t.Run(refusal[:6], func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				var all []*candidate
				for _, id := range []string{"a", "b"} {
					c := s.candidate(id)
					c.p.Net.OnCommand(func(redistest.Command) redistest.Fault { return redistest.ReplyError(refusal) })
					all = append(all, c.campaign(untilOver))
				}
				s.At(6 * time.Second)
				for _, c := range all {
					if c.IsLeader() || c.Check(time.Second) != nil {
						t.Errorf("%s leads: %v, %v", c.id, c.IsLeader(), c.Check(time.Second))
					}
					c.p.Net.OnCommand(c.p.Observe)
				}
				s.At(12 * time.Second)
				if all[0].IsLeader() == all[1].IsLeader() {
					t.Errorf("a leads: %v, b leads: %v", all[0].IsLeader(), all[1].IsLeader())
				}
				retire(all...)
			})
		})
	}
}

// A Run that has ended with an error of its own is found by the liveness probe.
func TestCheckFindsARunThatHasEnded(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		c := s.candidate("a")
		s.RDB.Set(t.Context(), name, "precious", 0)
		err := c.Run(t.Context(), untilOver)
		world.WantErr(t, err, holdfast.ErrWrongType)
		world.WantErr(t, c.Check(time.Hour), holdfast.ErrWrongType)
		s.RDB.Del(t.Context(), name)
		c.campaign(untilOver)
		s.At(time.Second)
		redistest.Check(t, c.Check(0))
		c.retire()
		redistest.Check(t, c.Check(0))
	})
}

// A leader that is cut off ends its work that much before another leads, whether the election or the Client says so.
func TestGrace(t *testing.T) {
	for what, tc := range map[string]struct {
		client []holdfast.Option
		own    []leader.Option
	}{
		"of the election": {nil, []leader.Option{leader.Grace(10 * time.Second)}},
		"of the Client":   {[]holdfast.Option{holdfast.WithDefaults(holdfast.Grace(10 * time.Second))}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				a := s.candidateOf(s.Process(tc.client...), "a", tc.own...).campaign(untilOver)
				b := s.candidate("b").campaign(untilOver)
				s.At(5 * time.Second)
				a.p.Unplug(true)
				s.At(40 * time.Second)
				_, _, ended, why := a.seen()
				world.WantErr(t, why, holdfast.ErrLost)
				_, began, _, _ := b.seen()
				world.Within(t, "from the end of the term to the next", began-ended, 10*time.Second, 11*time.Second)
				a.p.Unplug(false)
				retire(a, b)
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
				world.Equal(t, s.waiting(b), "", "waiting: %s")
				b.retire()
				time.Sleep(2 * time.Second)
				s.wantNobody(b)
				c := s.candidate("c")
				c.p.On(script, 1, redistest.Delay(time.Second)) // nobody leads: it is granted meanwhile
				c.campaign(untilOver)
				c.retire()
				time.Sleep(3 * time.Second)
				synctest.Wait()
				world.Equal(t, s.RDB.Exists(t.Context(), name, recordKey, namesKey, queueKey).Val(), 0, "%d keys are left")
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
		c.retire()
	})
}
