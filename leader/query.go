// Queries: who leads, and who waits to.

package leader

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
)

// Info is what a leader says about itself. The zero Info stands for nobody.
type Info struct {
	// Identity and Value are as the leader's options set them.
	Identity string
	Value    string
	// Priority is the leader's priority.
	Priority int
	// Token is the fencing token of its term: each term has a greater one than every earlier term of
	// the name. It is 0 if nobody leads.
	Token int64
	// Since is when the term began, by Redis's clock.
	Since time.Time
	// Left is how long the term lasts if it is not renewed any more.
	Left time.Duration
}

// Leads reports whether the Info is about a leader. It is false if nobody leads.
func (i Info) Leads() bool { return i.Token != 0 }

// Leader returns who leads. If nobody does, the error matches ErrNoLeader. A leader is seen from
// before its work begins until its work has returned, or its lease is over. Leader asks the master,
// once, and waits for its answer as long as ctx allows, at most 3 s.
func (e *Election) Leader(ctx context.Context) (Info, error) { return e.ask(ctx, "query") }

// ask is Leader for that operation.
func (e *Election) ask(ctx context.Context, op string) (Info, error) {
	if err := e.usable(op); err != nil {
		return Info{}, err
	}
	ctx, cancel := engine.Bounded(ctx)
	defer cancel()
	info, err := e.look(ctx)
	if err == nil && !info.Leads() {
		err = errs.NoLeader
	}
	if err != nil {
		return Info{}, e.failed(op, errs.Ended(ctx, err))
	}
	return info, nil
}

// look asks who leads. The zero Info says that nobody does.
func (e *Election) look(ctx context.Context) (Info, error) {
	call := e.resource.look()
	if err := e.engine().Conn.Run(ctx, call); err != nil {
		return Info{}, err
	}
	return infoIn(call), nil
}

// Candidate is one candidate that waits to lead.
type Candidate struct {
	// Identity is as the candidate's options set it.
	Identity string
	Priority int
	// Owner is the id under which it waits.
	Owner lease.Owner
}

// Candidates returns those that wait to lead, in all processes, the next one first. The leader is not
// among them. A candidate whose process died is in the list until it is passed over, for at most 2.5 s.
//
// Candidates asks for 256 places at a time, so that Redis serves others in between. A candidate that
// comes or goes during the call may be in the list or not.
func (e *Election) Candidates(ctx context.Context) ([]Candidate, error) {
	const op = "query"
	if err := e.usable(op); err != nil {
		return nil, err
	}
	all := []Candidate{}
	for from := "-inf"; from != ""; {
		call := e.resource.candidates(from)
		if err := e.resource.Run(ctx, op, call); err != nil {
			return nil, err
		}
		var err error
		if all, from, err = addCandidates(all, call); err != nil {
			return nil, e.failed(op, err)
		}
	}
	return all, nil
}
