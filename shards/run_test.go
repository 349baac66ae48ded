// These tests show who works on which shard, and when, on virtual time.

package shards_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/shards"
)

func TestRun_MembersShareEvenlyAndMoveAsFewAsCanBe(t *testing.T) {
	play(t, 64, func(t *testing.T, s *stage) {
		a := s.join("a", nil)
		s.want("[64]", a)
		b := s.join("b", nil)
		s.settle("[32 32]", a, b)
		s.wantMoves(32)
		c := s.join("c", nil)
		s.settle("[22 21 21]", a, b, c)
		s.wantMoves(21)
		b.retire()
		s.settle("[32 0 32]", a, b, c)
		s.wantMoves(21)
		s.At(5 * time.Minute)
		s.want("[32 0 32]", a, b, c)
		if all, _ := s.moved(); all != 0 {
			t.Errorf("%d moves though nobody came or left", all)
		}
		a.retire()
		c.retire()
		if s.Mini.Exists(membersKey) || s.Mini.Exists(tableKey) {
			t.Error("something is left when there is no member")
		}
	})
}

// The member that has a shard is asked: its work's context ends, and only once the work has returned does another begin.
func TestRun_AShardIsGivenUpWhenItsWorkHasReturned(t *testing.T) {
	play(t, 2, func(t *testing.T, s *stage) {
		a := s.joinOf(s.Process(), "a", 40*time.Second, nil)
		b := s.join("b", nil)
		s.At(30 * time.Second)
		s.want("[2 0]", a, b)
		resigned := 0
		for n := range 2 {
			if ctx := a.context(n); ctx.Err() != nil {
				resigned++
				world.WantEnd(t, ctx, holdfast.ErrResigned)
			}
		}
		if resigned != 1 {
			t.Fatalf("%d contexts have ended, want 1", resigned)
		}
		s.At(45 * time.Second)
		s.want("[1 1]", a, b)
	})
}

func TestRun_TheShardsOfADeadMemberGoOnElsewhere(t *testing.T) {
	play(t, 10, func(t *testing.T, s *stage) {
		lease := shards.Lease(10 * time.Second)
		a, b, c := s.join("a", nil, lease), s.join("b", nil, lease), s.join("c", nil, lease)
		s.rest()
		s.At(time.Minute)
		s.moved()
		s.mu.Lock()
		one := slices.Min(slices.Collect(maps.Keys(a.has)))
		s.mu.Unlock()
		ctx := a.context(one)
		died := s.Now()
		a.p.Unplug(true)
		// Its works end before others begin: the stage fails otherwise.
		for s.Now() < died+11*time.Second && s.shares(a, b, c) != "[0 5 5]" {
			s.At(s.Now() + 100*time.Millisecond)
		}
		world.WantEnd(t, ctx, holdfast.ErrLost)
		s.want("[0 5 5]", a, b, c)
		if all, most := s.moved(); all > 4 || most != 1 {
			t.Errorf("%d moves, at most %d of one shard", all, most)
		}
		// It comes back as a new member.
		a.p.Unplug(false)
		s.At(s.Now() + 5*settled)
		s.want("[3 3 4]", a, b, c)
	})
}

func TestRun_WorkThatReturnsBeginsAgainLater(t *testing.T) {
	play(t, 2, func(t *testing.T, s *stage) {
		var times []time.Duration
		a := s.join("a", func(ctx context.Context, shard *shards.Shard) error {
			if shard.Number() == 1 {
				<-ctx.Done()
				return nil
			}
			s.mu.Lock()
			times = append(times, s.Now())
			s.mu.Unlock()
			return errors.New("it fails")
		})
		s.At(10 * time.Second)
		a.retire()
		if len(times) != 4 || s.begun[1] != 1 {
			t.Errorf("the work began at %v, and that of another shard %d times; want 4 times and once", times, s.begun[1])
		}
	})
}

func TestRun_ReturnsWithItsContextOrWithTheClient(t *testing.T) {
	play(t, 4, func(t *testing.T, s *stage) {
		a, b := s.join("a", nil), s.joinOf(s.Process(), "b", time.Second, nil) // b's works go on for a second
		s.rest()
		redistest.Is(t, "a second Run", a.Run(t.Context(), func(context.Context, *shards.Shard) error { return nil }), holdfast.ErrBadArgument)
		go a.p.Shutdown(t.Context())
		<-a.done
		world.WantErr(t, a.err, holdfast.ErrClosed)
		s.settle("[0 4]", a, b)
		b.p.Close()
		<-b.done
		world.WantErr(t, b.err, holdfast.ErrClosed)
		if !s.Mini.Exists(membersKey) {
			t.Error("Close gave the shards up, though works might still have gone on")
		}
		s.At(s.Now() + 3*time.Minute)
	})
}

// Redis loses all data. Every work ends, and the processes come back as new members.
func TestRun_RedisForgets(t *testing.T) {
	play(t, 8, func(t *testing.T, s *stage) {
		a, b := s.join("a", nil), s.join("b", nil)
		s.rest()
		s.forced = true
		s.Mini.FlushAll()
		s.At(s.Now() + 2*settled)
		s.forced = false
		s.want("[4 4]", a, b)
		for n := range 8 {
			if s.begun[n] < 2 {
				t.Errorf("the work on shard %d went on though Redis knew of no member", n)
			}
		}
	})
}

// Whichever reply is lost, the members agree in the end on who has what.
func TestRun_LostReplies(t *testing.T) {
	for _, script := range []string{world.ShardsJoinRun, world.ShardsBalanceRun, world.ShardsLeaveRun} {
		for n := 1; n <= 4; n++ {
			play(t, 6, func(t *testing.T, s *stage) {
				p, q := s.Process(), s.Process()
				for _, lossy := range []*world.Process{p, q} {
					lossy.On(script, n, redistest.CloseAfterExec)
				}
				a := s.joinOf(p, "a", 0, nil)
				b := s.joinOf(q, "b", 0, nil)
				s.At(20 * time.Second)
				s.want("[3 3]", a, b)
				b.retire()
				s.settle("[6]", a)
			})
		}
	}
}

func TestRun_AtMostTwoRequestsASecond(t *testing.T) {
	play(t, 30, func(t *testing.T, s *stage) {
		a := s.join("a", nil)
		for i := range 6 {
			m := s.joinOf(s.Process(), string(rune('b'+i)), 0, nil)
			s.At(s.Now() + 700*time.Millisecond)
			m.retire()
		}
		s.rest()
		times := a.p.Times(world.ShardsBalanceRun)
		for i := 2; i < len(times); i++ {
			if times[i]-times[i-2] < time.Second {
				t.Errorf("requests at %v, %v and %v", times[i-2], times[i-1], times[i])
			}
		}
		a.p.Forget()
		s.At(s.Now() + 100*time.Second)
		if n := len(a.p.Times("")); n > 100 {
			t.Errorf("%d requests in 100 s though nothing changed", n)
		}
	})
}

func TestRun_ReturnsWhenItsWorksHave(t *testing.T) {
	play(t, 3, func(t *testing.T, s *stage) {
		a := s.joinOf(s.Process(), "a", 20*time.Second, nil)
		b := s.join("b", nil)
		a.stop(errors.New("the process shuts down"))
		s.At(10 * time.Second)
		select {
		case <-a.done:
			t.Error("Run has returned while its works go on")
		default:
		}
		<-a.done
		s.settle("[3]", b)
	})
}

// Redis renews the members, but refuses to say who has what, and the table runs out meanwhile. Each gives its works
// up in time: nobody begins one beside another when Redis answers again.
func TestRun_MembersThatRedisDoesNotAnswerAreLost(t *testing.T) {
	play(t, 4, func(t *testing.T, s *stage) {
		a, b := s.join("a", nil), s.join("b", nil)
		s.settle("[2 2]", a, b)
		for _, m := range []*member{a, b} {
			m.p.Always(world.ShardsBalanceRun, redistest.ReplyError("NOPERM this user has no permissions to run the 'hgetall' command"))
		}
		s.At(5 * time.Minute)
		s.want("[0 0]", a, b)
		for _, m := range []*member{a, b} {
			m.p.Each(nil)
		}
		s.At(6 * time.Minute)
		s.want("[2 2]", a, b)
	})
}

// A lease that is much shorter than the time between two requests: the table outlasts it, and nobody is lost.
func TestRun_TheShortestLease(t *testing.T) {
	play(t, 4, func(t *testing.T, s *stage) {
		a, b := s.join("a", nil, shards.Lease(lease.MinLease)), s.join("b", nil, shards.Lease(lease.MinLease))
		s.rest()
		s.moved()
		s.At(time.Minute)
		s.want("[2 2]", a, b)
		if all, _ := s.moved(); all != 0 || s.begun[0]+s.begun[1]+s.begun[2]+s.begun[3] != 6 {
			t.Errorf("%d moves, and works began %v times", all, s.begun)
		}
	})
}

// A lease of 292 years: what is reckoned from it is no more than a time.Duration holds.
func TestRun_TheLongestLease(t *testing.T) {
	play(t, 2, func(t *testing.T, s *stage) {
		a := s.join("a", nil, shards.Lease(math.MaxInt64))
		s.At(time.Minute)
		s.want("[2]", a)
		if begun, kept := s.begun[0]+s.begun[1], s.PTTL(tableKey); begun != 2 || kept < time.Hour {
			t.Errorf("works began %d times, and the table is kept for %v", begun, kept)
		}
	})
}

// A member leaves, and its work takes longer than the table is kept after the last request. Whoever comes meanwhile
// has nothing until the work has returned.
func TestRun_ADrainOutlastsTheTable(t *testing.T) {
	play(t, 4, func(t *testing.T, s *stage) {
		a := s.joinOf(s.Process(), "a", time.Minute, nil, shards.Lease(2*time.Second))
		s.rest()
		a.stop(errors.New("a rolling deploy"))
		s.At(40 * time.Second)
		b := s.join("b", nil, shards.Lease(2*time.Second))
		s.settle("[4 0]", a, b)
		<-a.done
		s.settle("[4]", b)
	})
}

// The table is that of before another member came, as after a failover that forgets: the member that is said to have
// all shards begins none with the token that it had.
func TestRun_TheTableOfBefore(t *testing.T) {
	play(t, 4, func(t *testing.T, s *stage) {
		a := s.join("a", nil)
		s.At(10 * time.Second)
		before, _ := s.Mini.HKeys(tableKey)
		values := make(map[string]string)
		for _, field := range before {
			values[field] = s.Mini.HGet(tableKey, field)
		}
		b := s.join("b", nil)
		s.settle("[2 2]", a, b)
		s.forced = true // b does not know yet
		s.Mini.Del(tableKey)
		for field, value := range values {
			s.Mini.HSet(tableKey, field, value)
		}
		s.rest()
		s.settle("[2 2]", a, b)
	})
}

// Redis forgets that a member has a shard, and gives it to the same one again: it has one work on it at a time.
func TestRun_OneWorkOfAShardInAProcess(t *testing.T) {
	play(t, 1, func(t *testing.T, s *stage) {
		a := s.joinOf(s.Process(), "a", 30*time.Second, nil)
		s.At(10 * time.Second)
		s.Mini.HDel(tableKey, "0")
		s.Mini.HSet(tableKey, "rev", "946684800000000")
		s.At(2 * time.Minute)
		s.want("[1]", a)
		world.Equal(t, s.begun[0], 2, "the work began %d times, want 2")
	})
}

// A work ends its goroutine, as a failed test does. The shard is given up and goes on.
func TestRun_AWorkThatEndsItsGoroutine(t *testing.T) {
	play(t, 1, func(t *testing.T, s *stage) {
		first := true
		a := s.join("a", func(ctx context.Context, _ *shards.Shard) error {
			if first {
				first = false
				runtime.Goexit()
			}
			<-ctx.Done()
			return nil
		})
		s.settle("[1]", a)
	})
}
