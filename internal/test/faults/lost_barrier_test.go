// The calls of a barrier lose their replies, or their requests, as those of the locks do in lost_test.go.

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/barrier"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// told is what a party was told.
type told struct {
	barrier.Trip
	err error
	at  time.Time
}

// unanswered is how long a party that leaves waits for Redis, before it says that it does not know.
const unanswered = 3 * time.Second

// comes starts a party.
func comes(ctx context.Context, b *barrier.Barrier) <-chan told {
	c := make(chan told, 1)
	go func() {
		trip, err := b.Await(ctx)
		c <- told{trip, err, time.Now()}
	}()
	return c
}

// generations are those of one barrier of three parties, of which the unlucky Client has one.
type generations struct {
	*unlucky
	ctx          context.Context
	name         string
	mine, theirs *barrier.Barrier
	last         int64 // the number of the last one

	came []<-chan told // the parties of the one under way, ours first if it came first
	left time.Time     // when ours left
}

func (u *unlucky) generationsOf(ctx context.Context, c *holdfast.Client, name string, options ...barrier.Option) *generations {
	return &generations{
		unlucky: u, ctx: ctx, name: name,
		mine: c.Barrier(name, 3, options...), theirs: u.onlooker.Barrier(name, 3, options...),
	}
}

// come has a party come, and returns when so many have come.
func (g *generations) come(ctx context.Context, b *barrier.Barrier, arrived int) error {
	g.came = append(g.came, comes(ctx, b))
	for {
		s, err := g.theirs.State(g.ctx)
		if err != nil || s.Arrived == arrived {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// wait has our party come, and returns when it waits: it has asked how the barrier stands, and so Redis
// has answered its arrival.
func (g *generations) wait(ctx context.Context) error {
	looks := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.looks[g.name]
	}
	before := looks()
	err := g.come(ctx, g.mine, 1)
	for err == nil && looks() == before {
		time.Sleep(time.Millisecond)
		err = g.ctx.Err()
	}
	return err
}

// trips returns an error unless the parties that have come, and as many as are missing, are told that one
// generation has tripped, each with another arrival, and nothing is left.
func (g *generations) trips() error {
	for len(g.came) < 3 {
		g.came = append(g.came, comes(g.ctx, g.theirs))
	}
	arrivals := map[int]bool{}
	return g.ended(func(of told) error {
		if of.err != nil || of.Arrival < 0 || of.Arrival > 2 || arrivals[of.Arrival] {
			return fmt.Errorf("a party was told %+v, others the arrivals %v", of, arrivals)
		}
		arrivals[of.Arrival] = true
		return nil
	})
}

// breaks returns an error unless the parties that have come are told that one generation has broken, and
// nothing is left. If ours has left, it is the first, and is told that it has. On a machine that stands still
// Redis may not answer it in time.
func (g *generations) breaks(left bool) error {
	return g.ended(func(of told) error {
		knows := !errors.Is(of.err, holdfast.ErrUnknown) || left && of.at.Sub(g.left) >= unanswered
		if !knows || !errors.Is(of.err, holdfast.ErrBroken) && !(left && errors.Is(of.err, context.Canceled)) {
			return fmt.Errorf("a party was told %v", of.err)
		}
		left = false
		return nil
	})
}

// ended waits until all that have come were told of one generation, later than the last, and have left.
func (g *generations) ended(check func(told) error) error {
	generation := int64(0)
	for _, c := range g.came {
		of := <-c
		if err := check(of); err != nil {
			return err
		}
		if generation == 0 {
			generation = of.Generation
		}
		if of.Generation != generation || generation <= g.last {
			return fmt.Errorf("a party was told of generation %d, another of %d, after %d", of.Generation, generation, g.last)
		}
	}
	g.last, g.came = generation, nil
	return g.gone()
}

// places returns the key of the places.
func (g *generations) places() string { return "holdfast_barrier_places:{" + g.name + "}" }

// gone waits until no party has a place.
func (g *generations) gone() error {
	for {
		all, err := g.direct.ZRange(g.ctx, g.places(), 0, -1).Result()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(member string) bool { return !strings.HasPrefix(member, "left:") }) {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}

// barrierLife returns the operations in the life of a barrier.
func (u *unlucky) barrierLife(ctx context.Context, name string) []operation {
	g := u.generationsOf(ctx, u.Client, name)
	leaves := func() error { // ours comes first, another waits with it, and ours leaves
		bounded, leave := context.WithCancel(ctx)
		err := errors.Join(g.wait(bounded), g.come(ctx, g.theirs, 2))
		g.left = time.Now()
		leave()
		return err
	}
	left := func() error { return g.breaks(true) }
	return []operation{
		{what: "the arrival", script: world.BarrierEnterRun, call: func() error { return g.come(ctx, g.mine, 1) }, want: g.trips},
		{what: "the arrival of the last", script: world.BarrierEnterRun, call: func() error {
			err := errors.Join(g.come(ctx, g.theirs, 1), g.come(ctx, g.theirs, 2))
			g.came = append(g.came, comes(ctx, g.mine))
			return err
		}, want: g.trips},
		{what: "the look", script: world.BarrierLookRun, call: func() error { return g.wait(ctx) }, want: g.trips},
		{what: "the end of a place that trips", script: world.BarrierReleaseRun, call: func() error { return g.wait(ctx) }, want: g.trips},
		{what: "the leaving", script: world.BarrierBreakRun, call: leaves, want: left},
		{what: "the end of the place of one that leaves", script: world.BarrierReleaseRun, call: leaves, want: left},
		{what: "State", script: world.BarrierStateRun, call: func() error {
			s, err := g.mine.State(ctx)
			if err == nil && (s.Generation != g.last || s.Arrived != 0) {
				err = fmt.Errorf("it says %+v after %d", s, g.last)
			}
			return err
		}, want: func() error { return nil }},
		{what: "Reset", script: world.BarrierBreakRun, call: func() error {
			return errors.Join(g.come(ctx, g.theirs, 1), g.come(ctx, g.theirs, 2), said(g.mine.Reset(ctx)))
		}, want: func() error { return g.breaks(false) }},
	}
}

func TestEveryRenewalOfAPlaceLosesItsReply(t *testing.T) { loseEachRenewal(t, false) }

func TestEveryRenewalOfAPlaceLosesItsRequest(t *testing.T) { loseEachRenewal(t, true) }

// loseEachRenewal lets the renewals of places lose their replies, or their requests. Each party waits
// until its place has been renewed, which takes a third of the lease. So many wait at once, and each has a
// Client of its own: else a lost reply would take others with it.
func loseEachRenewal(t *testing.T, requests bool) {
	const lease, atOnce = time.Second, 32
	redistest.Undisturbed(t, lease/2, func(t testing.TB) {
		u := newUnlucky(t, requests)
		clients := make(chan *holdfast.Client, atOnce)
		for range atOnce {
			clients <- u.another(t)
		}
		lives := redistest.Count(t, 10_000)
		clienttest.Each(lives, atOnce, func(i int) {
			c := <-clients
			defer func() { clients <- c }()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			g := u.generationsOf(ctx, c, fmt.Sprint("renewed", i), barrier.Lease(lease))
			if err := g.outlastsALostRenewal(); err != nil {
				t.Errorf("%s: %v", g.name, err)
			}
		})
		clienttest.Figure(t, "%d lost %s of renewals of places: all generations tripped", u.lost, u.what())
	})
}

// outlastsALostRenewal has our party wait until its place has been renewed, although the first renewal was
// lost. Then the generation trips.
func (g *generations) outlastsALostRenewal() error {
	g.arm(g.name, aim{world.BarrierRenewRun, 1})
	if err := g.come(g.ctx, g.mine, 1); err != nil {
		return err
	}
	came, until := 0.0, 0.0 // when its place is over
	for until == came || g.isArmed(g.name) {
		places, err := g.direct.ZRangeWithScores(g.ctx, g.places(), 0, -1).Result()
		if err != nil || len(places) != 1 {
			return fmt.Errorf("the places are %v: %w", places, err)
		}
		if until = places[0].Score; came == 0 {
			came = until
		}
		time.Sleep(5 * time.Millisecond)
	}
	return g.trips()
}
