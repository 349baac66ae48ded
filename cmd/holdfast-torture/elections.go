// Elections: a lane is a candidate, and its term is a hold as any other. Candidates differ in priority,
// some preempt, and deposers ask the leaders to resign.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/leader"
)

const (
	// deposeEvery is the longest pause between two requests of a deposer.
	deposeEvery = 300 * time.Millisecond
	// tryTerm is how long a candidate campaigns that only tries: there is no TryLock of an election.
	tryTerm = 20 * time.Millisecond
)

// election makes a candidate, drawn at random.
func (w ways) election(object string, r *rand.Rand) *leader.Election {
	options := []leader.Option{leader.Lease(w.lease), leader.Priority(r.IntN(2))}
	if r.IntN(10) == 0 {
		options = append(options, leader.Preempt())
	}
	return w.clients[0].Leader(object, options...)
}

func ofElection(e *leader.Election) taking {
	return taking{amount: 1, lock: func(ctx context.Context, try bool) (grant, int64, error) {
		if try {
			short, cancel := context.WithTimeout(ctx, tryTerm)
			defer cancel()
			ctx = short
		}
		t, err := campaign(ctx, e)
		if err != nil {
			return nil, 0, err
		}
		return t, t.Token(), nil
	}}
}

// term is a term that a lane has. Run goes on beside the lane until the lane leaves.
type term struct {
	*leader.Term
	ctx   context.Context // the work's
	leave chan struct{}   // closed when the work is to return
	why   error           // how the term ended, if it did before the lane left; read after Run
	over  chan error      // has Run's error
}

// campaign returns the term once the candidate leads, or the reason why ctx ended first.
func campaign(ctx context.Context, e *leader.Election) (*term, error) {
	running, stop := context.WithCancel(context.Background())
	elected, over := make(chan *term), make(chan error, 1)
	led := false
	go func() {
		defer stop()
		over <- e.Run(running, func(ctx context.Context, t *leader.Term) error {
			if led {
				return nil // the last term ended just after its lane had left
			}
			mine := &term{Term: t, ctx: ctx, leave: make(chan struct{}), over: over}
			select {
			case elected <- mine:
			case <-ctx.Done():
				return nil // over before the lane took it
			}
			led = true
			<-mine.leave
			if mine.why = context.Cause(ctx); mine.why != nil {
				stop() // Run is not to campaign again
			}
			return nil
		})
	}()
	select {
	case t := <-elected:
		return t, nil
	case err := <-over:
		return nil, err
	case <-ctx.Done():
		stop()
		<-over
		return nil, ctx.Err()
	}
}

func (t *term) Context(context.Context) context.Context { return t.ctx }

// Release lets the work return, and waits for the end of Run.
func (t *term) Release(context.Context) error {
	close(t.leave)
	err := <-t.over
	if t.why != nil {
		return t.why
	}
	return err
}

// runDeposer asks leaders to resign, until ctx ends.
func (l *lane) runDeposer(ctx context.Context) error {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(l.rand.Int64N(int64(deposeEvery))))
		object := fmt.Sprintf("%s-%d", l.kind, l.rand.IntN(l.names))
		err := l.ways.clients[0].Leader(object).RequestResign(ctx)
		if err == nil || errors.Is(err, holdfast.ErrNoLeader) {
			continue
		}
		if err := l.missed(ctx, object, err); err != nil {
			return fmt.Errorf("lane %s: %w", l.name, err)
		}
	}
	return nil
}
