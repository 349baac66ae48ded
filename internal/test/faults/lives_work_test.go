// The lives of elections, of a Once, of ticks, of barriers and of limits that meet mishaps in lost_test.go.

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/barrier"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/once"
)

// candidate is one candidate while its Run goes on.
type candidate struct {
	*leader.Election
	stop  context.CancelFunc
	terms chan *leader.Term
	ended chan error // how a term's context ended
	leave chan struct{}
	over  chan error
}

// campaign starts the candidate's Run.
func campaign(ctx context.Context, e *leader.Election) *candidate {
	ctx, stop := context.WithCancel(ctx)
	c := &candidate{e, stop, make(chan *leader.Term, 1), make(chan error, 1), make(chan struct{}), make(chan error, 1)}
	go func() {
		c.over <- c.Run(ctx, func(ctx context.Context, t *leader.Term) error {
			c.terms <- t
			context.AfterFunc(ctx, func() { c.ended <- context.Cause(ctx) })
			<-c.leave
			return nil
		})
	}()
	return c
}

// beat is how long the onlooker pauses between two looks.
const beat = 10 * time.Millisecond

// leads waits until the candidate leads.
func (c *candidate) leads(ctx context.Context) (*leader.Term, error) {
	select {
	case t := <-c.terms:
		return t, nil
	case err := <-c.over:
		return nil, fmt.Errorf("it does not lead: %w", err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// retire ends a Run whose work leads, or whose term is over.
func (c *candidate) retire() error {
	c.stop()
	close(c.leave)
	if err := <-c.over; !errors.Is(err, context.Canceled) {
		return fmt.Errorf("Run = %w", err)
	}
	return nil
}

// leaderLife has what candidates and onlookers of an election do.
func (u *unlucky) leaderLife() {
	elect := func(c *holdfast.Client) *candidate {
		return campaign(u.ctx, c.Leader(u.name, leader.Lease(u.lease), leader.Identity("x")))
	}
	e, now := u.Leader(u.name), u.onlooker.Leader(u.name)
	var mine *candidate
	begin := func(ctx context.Context) (*leader.Term, error) {
		mine = elect(u.Client)
		return mine.leads(ctx)
	}
	leads := func(term *leader.Term) {
		u.t.Helper()
		info, err := now.Leader(u.ctx)
		u.must(err)
		u.want(info.Token == term.Token() && mine.IsLeader(), "%d leads, want %d", info.Token, term.Token())
	}
	term := get(u, "the campaign", begin)
	leads(term)
	if u.virtual {
		for range 3 {
			u.do("the renewals", func() error { time.Sleep(u.lease * 5 / 6); return nil })
		}
		leads(term)
	}
	info := get(u, "Leader", e.Leader)
	u.want(info.Token == term.Token() && info.Identity == "x", "it says %+v, want %d", info, term.Token())
	theirs := elect(u.onlooker)
	for waiting := 0; waiting == 0; time.Sleep(beat) {
		all, err := now.Candidates(u.ctx)
		u.must(err)
		waiting = len(all)
	}
	all := get(u, "Candidates", e.Candidates)
	u.want(len(all) == 1 && all[0].Identity == "x", "it says %v", all)
	u.do("RequestResign", func() error { return e.RequestResign(u.ctx) })
	u.refused("the end of the term", <-mine.ended, holdfast.ErrResigned)
	u.do("Release of the lead at the end of a term", mine.retire)
	next, err := theirs.leads(u.ctx)
	u.must(err)
	u.want(next.Token() > term.Token(), "token %d after %d", next.Token(), term.Token())
	term = get(u, "the beginning of the next term", func(ctx context.Context) (*leader.Term, error) {
		mine = elect(u.Client)
		waits := func() (*leader.Term, error) { return mine.leads(ctx) }
		return beside(waits, theirs.retire)
	})
	u.want(term.Token() > next.Token(), "token %d after %d", term.Token(), next.Token())
	leads(term)
	u.do("Release of the lead for good", func() error { close(mine.leave); return <-mine.over })
	_, err = now.Leader(u.ctx)
	u.refused("Leader", err, holdfast.ErrNoLeader)
}

// onceLife has what callers of a Once do with a key, and a tick.
func (u *unlucky) onceLife() {
	const key = "k"
	failed := errors.New("the work failed")
	done, last, takes := 0, int64(0), time.Duration(0)
	work := func(ctx context.Context) (int64, error) {
		time.Sleep(takes)
		done++
		u.want(once.Token(ctx) > last, "token %d after %d", once.Token(ctx), last)
		last = once.Token(ctx)
		return last, nil
	}
	value := func(c *holdfast.Client) func(context.Context) (int64, error) {
		return func(ctx context.Context) (int64, error) { return once.Value(ctx, c.Once(u.name), key, work) }
	}
	runs := func(want int) { // and all have the last result
		u.t.Helper()
		n, err := value(u.onlooker)(u.ctx)
		u.must(err)
		u.want(done == want && n == last, "done %d times, want %d; the result is %d, want %d", done, want, n, last)
	}
	forgotten := func() { u.must(u.onlooker.Once(u.name).Forget(u.ctx, key)) }
	u.want(get(u, "Value", value(u.Client)) == last, "another result")
	runs(1)
	u.want(get(u, "Value of what is done", value(u.Client)) == last, "another result")
	runs(1)
	u.do("Forget", func() error { return u.Once(u.name).Forget(u.ctx, key) })
	runs(2)
	forgotten()
	u.do("Do of work that fails", func() error {
		err := once.Do(u.ctx, u.Once(u.name), key, func(context.Context) error { return failed })
		u.refused("Do", err, failed)
		return nil
	})
	runs(3)
	if u.virtual {
		forgotten()
		takes = 35 * time.Second // longer than its lease
		u.want(get(u, "Value of long work", value(u.Client)) == last, "another result")
		runs(4)
		forgotten()
		n := get(u, "Value that another makes", func(ctx context.Context) (int64, error) {
			return beside(func() (int64, error) { return value(u.onlooker)(ctx) }, func() error {
				n, err := value(u.Client)(ctx)
				u.want(err != nil || n == last, "another result")
				return err
			})
		})
		u.want(n == last && done == 5, "done %d times", done)
	}
	at := time.Now()
	u.want(get(u, "Tick", func(ctx context.Context) (bool, error) { return u.Tick(ctx, u.name, at, time.Minute) }), "it says false")
	won, err := u.onlooker.Tick(u.ctx, u.name, at, time.Minute)
	u.must(err)
	u.want(!won, "a tick has two winners")
}

// told is what a party of a barrier was told.
type told struct {
	barrier.Trip
	err error
	at  time.Time
}

// unanswered is how long a party that leaves, or a Reset, waits for Redis before it says that it does not know.
// On a machine that stands still for so long, a real server may not answer in time.
const unanswered = 3 * time.Second

// generations are those of one barrier of three parties, of which the unlucky Client has one.
type generations struct {
	*unlucky
	mine, theirs *barrier.Barrier
	last         int64 // the number of the last one

	came []<-chan told // the parties of the one under way, ours first if it came first
	left time.Time     // when ours left
}

// come has a party come, and returns when so many have come.
func (g *generations) come(ctx context.Context, b *barrier.Barrier, arrived int) {
	c := make(chan told, 1)
	g.came = append(g.came, c)
	go func() {
		trip, err := b.Await(ctx)
		c <- told{trip, err, time.Now()}
	}()
	for now := -1; now != arrived && arrived < 3; time.Sleep(beat) {
		s, err := g.theirs.State(g.ctx)
		g.must(err)
		now = s.Arrived
	}
}

// wait has our party come, and returns when it waits: it has asked how the barrier stands, and so Redis
// has answered its arrival.
func (g *generations) wait(ctx context.Context) {
	looks := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.looks
	}
	before := looks()
	g.come(ctx, g.mine, 1)
	for looks() == before {
		time.Sleep(beat)
	}
}

// trips fails the test unless the parties that have come, and as many as are missing, are told that one
// generation has tripped, each with another arrival, and nothing is left.
func (g *generations) trips() {
	for len(g.came) < 3 {
		g.come(g.ctx, g.theirs, 3)
	}
	arrivals := map[int]bool{}
	g.ended(func(of told) {
		g.must(of.err)
		g.want(of.Arrival >= 0 && of.Arrival <= 2 && !arrivals[of.Arrival], "a party was told %+v, others the arrivals %v", of, arrivals)
		arrivals[of.Arrival] = true
	})
}

// breaks fails the test unless the parties that have come are told that one generation has broken, and
// nothing is left. If ours has left, it is the first, and is told that it has.
func (g *generations) breaks(left bool) {
	g.ended(func(of told) {
		knows := !errors.Is(of.err, holdfast.ErrUnknown) || left && of.at.Sub(g.left) >= unanswered
		g.want(knows && (errors.Is(of.err, holdfast.ErrBroken) || left && errors.Is(of.err, context.Canceled)), "a party was told %v", of.err)
		left = false
	})
}

// ended waits until all that have come were told of one generation, later than the last, and have left.
func (g *generations) ended(check func(told)) {
	generation := int64(0)
	for _, c := range g.came {
		of := <-c
		check(of)
		if generation == 0 {
			generation = of.Generation
		}
		g.want(of.Generation == generation && generation > g.last, "a party was told of generation %d, another of %d, after %d", of.Generation, generation, g.last)
	}
	g.last, g.came = generation, nil
	for placed := true; placed; time.Sleep(beat) {
		all, err := g.direct.ZRange(g.ctx, "holdfast_barrier_places:{"+g.name+"}", 0, -1).Result()
		g.must(err)
		placed = slices.ContainsFunc(all, func(member string) bool { return !strings.HasPrefix(member, "left:") })
	}
}

// barrierLife has what parties of a barrier do.
func (u *unlucky) barrierLife() {
	g := &generations{unlucky: u, mine: u.Barrier(u.name, 3, barrier.Lease(u.lease)), theirs: u.onlooker.Barrier(u.name, 3, barrier.Lease(u.lease))}
	u.do("the arrival", func() error { g.come(u.ctx, g.mine, 1); return nil })
	g.trips()
	g.come(u.ctx, g.theirs, 1)
	g.come(u.ctx, g.theirs, 2)
	u.do("the arrival of the last", func() error { g.come(u.ctx, g.mine, 3); return nil })
	g.trips()
	u.do("the wait", func() error { g.wait(u.ctx); return nil })
	g.trips()
	if u.virtual {
		for range 3 {
			u.do("the renewals", func() error {
				if len(g.came) == 0 {
					g.wait(u.ctx)
				}
				time.Sleep(u.lease * 5 / 6)
				return nil
			})
		}
		g.trips()
	}
	ctx, leave := context.WithCancel(u.ctx)
	g.wait(ctx)
	g.come(u.ctx, g.theirs, 2)
	u.do("the leaving", func() error {
		g.left = time.Now()
		leave()
		return nil
	})
	g.breaks(true)
	s := get(u, "State", g.mine.State)
	u.want(s.Generation == g.last && s.Arrived == 0, "it says %+v after %d", s, g.last)
	g.come(u.ctx, g.theirs, 1)
	g.come(u.ctx, g.theirs, 2)
	u.do("Reset", func() error {
		reset, err := g.mine.Reset(u.ctx)
		u.want(reset || errors.Is(err, holdfast.ErrUnknown) && !u.virtual, "it says %t, %v", reset, err)
		return nil
	})
	g.breaks(false)
}

// limiterLife has what callers of a limit do. Each unit counts once, whatever became of its request.
func (u *unlucky) limiterLife() {
	rate := limiter.Rate(10, time.Hour)
	mine, theirs := u.Limiter(u.name, rate), u.onlooker.Limiter(u.name, rate)
	remain := func(want int) {
		u.t.Helper()
		u.calm()
		d, err := theirs.Allow(u.ctx, 1)
		u.must(err)
		u.want(d.Remaining == want, "%d units remain, want %d", d.Remaining, want)
	}
	u.do("Allow", func() error { return second(mine.Allow(u.ctx, 1)) })
	remain(8)
	u.do("Wait", func() error { return mine.Wait(u.ctx, 1) })
	remain(6)
	var r *limiter.Reservation
	u.do("Reserve", func() (err error) { r, err = mine.Reserve(u.ctx, 2); return err })
	u.do("Cancel", func() error { return r.Cancel(u.ctx) })
	remain(5)
	u.do("Set", func() error { return mine.Set(u.ctx, limiter.Rate(20, time.Hour)) })
	remain(14)
	u.must(u.direct.Del(u.ctx, "holdfast_limit:{"+u.name+"}").Err())
}
