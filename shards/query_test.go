// These tests show what others see of who has which shard.

package shards_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/shards"
)

func TestOwner(t *testing.T) {
	play(t, 16, func(t *testing.T, s *stage) {
		onlooker := s.Process().Shards(name, 16)
		const key = "order 7"
		shard := onlooker.Of(key)
		if shard != 6 { // FNV-1a(key) mod 16: others rely on it
			t.Errorf("the key is on shard %d", shard)
		}
		if info, err := onlooker.Owner(t.Context(), key); err != nil || info.Owned() || info.Shard != shard {
			t.Errorf("without members: %+v, %v", info, err)
		}
		a, b := s.join("a", nil), s.join("b", nil)
		s.rest()
		info, err := onlooker.Owner(t.Context(), key)
		owner := a
		if a.has[shard] == nil {
			owner = b
		}
		if err != nil || info.Identity != owner.id || info.Value != "addr of "+owner.id || info.Token != owner.has[shard].Token() || info.Left <= 0 {
			t.Errorf("%+v, %v; %s has it", info, err, owner.id)
		}
		redistest.Is(t, "another size", redistest.Err(s.Process().Shards(name, 17).Owner(t.Context(), key)), holdfast.ErrBadArgument)
		a.p.Unplug(true)
		b.p.Unplug(true)
		s.At(s.Now() + 40*time.Second)
		if info, err := onlooker.Owner(t.Context(), key); err != nil || info.Owned() {
			t.Errorf("when all are dead: %+v, %v", info, err)
		}
		s.RDB.FlushDB(t.Context())
	})
}

// Whoever watches sees each owner, also that there is none any more, and asks no more often than a member.
func TestWatch(t *testing.T) {
	play(t, 4, func(t *testing.T, s *stage) {
		p := s.Process()
		ctx, stop := context.WithCancel(t.Context())
		var seen [][]shards.Info
		done := make(chan struct{})
		go func() {
			defer close(done)
			for all := range p.Shards(name, 4).Watch(ctx) {
				seen = append(seen, all)
			}
		}()
		now := func(what string, want ...string) {
			t.Helper()
			s.rest()
			last := seen[len(seen)-1]
			for i, id := range want {
				if last[i].Identity != id || last[i].Shard != i || last[i].Owned() != (id != "") {
					t.Errorf("%s: %+v, want %v", what, last, want)
					return
				}
			}
		}
		now("nobody", "", "", "", "")
		a := s.join("a", nil)
		now("one", "a", "a", "a", "a")
		b := s.join("b", nil)
		now("two", "a", "a", "b", "b")
		a.retire()
		now("the other", "b", "b", "b", "b")
		b.p.Unplug(true)
		s.At(s.Now() + 30*time.Second)
		now("none alive", "", "", "", "")
		if n := len(p.Times(world.ShardsLookRun)); n > 80 {
			t.Errorf("%d requests in %v", n, s.Now())
		}
		stop()
		<-done
		s.RDB.FlushDB(t.Context())
	})
}

func TestWeight_SharesAreAsTheWeights(t *testing.T) {
	play(t, 100, func(t *testing.T, s *stage) {
		a := s.join("a", nil, shards.Weight(1))
		b := s.join("b", nil, shards.Weight(3))
		s.settle("[25 75]", a, b)
		c := s.join("c", nil, shards.Weight(6))
		s.settle("[10 30 60]", a, b, c)
		b.retire()
		s.settle("[14 0 86]", a, b, c)
	})
}

// With Moves, no more shards are on their way at a time.
func TestMoves_BoundsWhatIsOnItsWay(t *testing.T) {
	play(t, 12, func(t *testing.T, s *stage) {
		a := s.joinOf(s.Process(), "a", 3*time.Second, nil, shards.Moves(2))
		c := s.joinOf(s.Process(), "c", 3*time.Second, nil, shards.Moves(2))
		s.At(30 * time.Second)
		s.want("[6 6]", a, c)
		b := s.join("b", nil, shards.Moves(2))
		most := 0
		for s.shares(b) != "[4]" {
			ended := 0
			for _, m := range []*member{a, c} {
				for n := range 12 {
					if m.has[n] != nil && m.context(n).Err() != nil {
						ended++
					}
				}
			}
			most = max(most, ended)
			s.At(s.Now() + 50*time.Millisecond)
		}
		world.Equal(t, most, 2, "%d works were asked to end at a time")
	})
}

func TestArgumentsRefused(t *testing.T) {
	play(t, 1, func(t *testing.T, s *stage) {
		p := s.Process()
		for what, made := range map[string]*shards.Shards{
			"no shards":      p.Shards(name, 0),
			"too many":       p.Shards(name, shards.MaxShards+1),
			"no weight":      p.Shards(name, 1, shards.Weight(0)),
			"a heavy one":    p.Shards(name, 1, shards.Weight(shards.MaxWeight+1)),
			"fewer moves":    p.Shards(name, 1, shards.Moves(-1)),
			"a long value":   p.Shards(name, 1, shards.Value(string(make([]byte, shards.MaxValue+1)))),
			"a short lease":  p.Shards(name, 1, shards.Lease(time.Millisecond)),
			"a long grace":   p.Shards(name, 1, shards.Grace(time.Minute)),
			"a name in use":  p.Shards("holdfast_x", 1),
			"the zero value": {},
		} {
			run := made.Run(t.Context(), func(context.Context, *shards.Shard) error { return nil })
			_, owner := made.Owner(t.Context(), "x")
			world.WantErr(t, run, holdfast.ErrBadArgument)
			world.WantErr(t, owner, holdfast.ErrBadArgument)
			for range made.Watch(t.Context()) {
				t.Errorf("%s is watched", what)
			}
			if made.Of("x") != -1 {
				t.Errorf("%s: a shard", what)
			}
		}
		world.WantErr(t, p.Shards(name, 1).Run(t.Context(), nil), holdfast.ErrBadArgument)
	})
}

// While members have another number of shards, a process waits until they have left.
func TestRun_AnotherSize(t *testing.T) {
	play(t, 4, func(t *testing.T, s *stage) {
		a := s.join("a", nil)
		other := newStage(s.World, 6)
		b := other.join("b", nil)
		s.At(20 * time.Second)
		s.want("[4]", a)
		a.retire()
		s.At(30 * time.Second)
		other.want("[6]", b)
		b.retire()
	})
}
