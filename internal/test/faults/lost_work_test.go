// The calls of elections, of a Once and of ticks lose their replies, or their requests, as those of the
// locks do in lost_test.go.

package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/leader"
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

// waits returns when a candidate waits.
func waits(ctx context.Context, e *leader.Election) error {
	for {
		all, err := e.Candidates(ctx)
		if err != nil || len(all) > 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// leaderLife returns the operations in the life of an election.
func (u *unlucky) leaderLife(ctx context.Context, name string) []operation {
	elect := func(c *holdfast.Client) *candidate {
		return campaign(ctx, c.Leader(name, leader.Lease(30*time.Second), leader.Identity("x")))
	}
	e, now := u.Leader(name), u.onlooker.Leader(name)
	var mine, theirs *candidate
	var term *leader.Term
	var info leader.Info
	var waiting []leader.Candidate
	begin := func() (err error) {
		mine = elect(u.Client)
		term, err = mine.leads(ctx)
		return err
	}
	seen := func() error {
		info, err := now.Leader(ctx)
		if err == nil && (info.Token != term.Token() || !mine.IsLeader()) {
			err = fmt.Errorf("%d leads, want %d", info.Token, term.Token())
		}
		return err
	}
	return []operation{
		{what: "the campaign", call: begin, want: seen},
		{what: "Leader", call: func() (err error) { info, err = e.Leader(ctx); return err }, want: func() error {
			if info.Token != term.Token() || info.Identity != "x" {
				return fmt.Errorf("it says %+v, want %d", info, term.Token())
			}
			theirs = elect(u.onlooker)
			return waits(ctx, now)
		}},
		{what: "Candidates", call: func() (err error) { waiting, err = e.Candidates(ctx); return err }, want: func() error {
			if len(waiting) != 1 || waiting[0].Identity != "x" {
				return fmt.Errorf("it says %v", waiting)
			}
			return nil
		}},
		{what: "RequestResign", nth: 2, call: func() error { return e.RequestResign(ctx) }, want: func() error {
			if err := <-mine.ended; !errors.Is(err, holdfast.ErrResigned) {
				return fmt.Errorf("the term ended with %w", err)
			}
			return nil
		}},
		{what: "the end of the term", call: func() error { return mine.retire() }, want: func() error {
			next, err := theirs.leads(ctx)
			if err == nil && next.Token() <= term.Token() {
				err = fmt.Errorf("token %d after %d", next.Token(), term.Token())
			}
			return err
		}},
		{what: "the beginning of the next term", nth: 2, call: func() error { return errors.Join(theirs.retire(), begin()) }, want: seen},
		{what: "the resignation for good", call: func() error { close(mine.leave); return <-mine.over }, want: func() error {
			if _, err := now.Leader(ctx); !errors.Is(err, holdfast.ErrNoLeader) {
				return fmt.Errorf("Leader = %w, want ErrNoLeader", err)
			}
			return nil
		}},
	}
}

// onceLife returns the operations in the life of a key, and of a tick.
func (u *unlucky) onceLife(ctx context.Context, name string) []operation {
	const key = "k"
	failed := errors.New("the work failed")
	done := 0
	last, value := int64(0), int64(0)
	work := func(ctx context.Context) (int64, error) {
		done++
		if token := once.Token(ctx); token > last {
			last = token
			return token, nil
		}
		return 0, fmt.Errorf("token %d after %d", once.Token(ctx), last)
	}
	get := func(c *holdfast.Client) (err error) {
		value, err = once.Value(ctx, c.Once(name), key, work)
		return err
	}
	gets := func() error { return get(u.Client) }
	runs := func(want int) func() error { // and all have the last result
		return func() error {
			mine := value
			err := get(u.onlooker)
			if err == nil && (done != want || mine != last || value != last) {
				err = fmt.Errorf("done %d times, want %d; results %d and %d, want %d", done, want, mine, value, last)
			}
			return err
		}
	}
	forget := func() error { return u.Once(name).Forget(ctx, key) }
	again := func(want int) func() error {
		return func() error { return errors.Join(get(u.onlooker), runs(want)()) }
	}
	at := time.Now()
	return []operation{
		{what: "Value", call: gets, want: runs(1)},
		{what: "Value of what is done", call: gets, want: runs(1)},
		{what: "Forget", call: forget, want: again(2)},
		{what: "the writing of the result", nth: 2, call: func() error {
			return errors.Join(u.onlooker.Once(name).Forget(ctx, key), gets())
		}, want: runs(3)},
		{what: "the end of work that failed", nth: 2, call: func() error {
			err := errors.Join(u.onlooker.Once(name).Forget(ctx, key), once.Do(ctx, u.Once(name), key, func(context.Context) error { return failed }))
			if errors.Is(err, failed) {
				return nil
			}
			return fmt.Errorf("Do = %w, want the work's error", err)
		}, want: again(4)},
		{what: "Tick", call: func() error { return said(u.Tick(ctx, name, at, time.Minute)) }, want: func() error {
			won, err := u.onlooker.Tick(ctx, name, at, time.Minute)
			if err == nil && won {
				err = errors.New("a tick has two winners")
			}
			return err
		}},
	}
}
