// Queries: who leads, and who waits to.

package leader

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
)

// Info describes a leader. The zero Info means that nobody leads.
type Info struct {
	// Identity and Value are what the leader's options set.
	Identity string
	Value    string
	// Priority is the leader's priority.
	Priority int
	// Token is the fencing token of the leader's term: a number greater than the token of every earlier
	// term of the name. It is 0 if nobody leads.
	Token int64
	// Since is when the leader's term began, by Redis's clock.
	Since time.Time
	// Left is how long the leader's term lasts if it is not renewed again.
	Left time.Duration
}

// Leads reports whether somebody leads: it is false for the zero Info.
func (i Info) Leads() bool { return i.Token != 0 }

// Leader returns who leads. If nobody leads, the error matches ErrNoLeader. Leader returns a candidate
// from shortly before its work begins until its work has returned, or until its lease is over. Leader
// asks Redis's master once, and waits for the answer as long as ctx allows, at most 3 s.
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

// Candidate describes a candidate that waits to lead.
type Candidate struct {
	// Identity is what the candidate's options set.
	Identity string
	Priority int
	// Owner is the id under which the candidate waits.
	Owner lease.Owner
}

// Candidates returns the candidates that wait to lead, in all processes. The first in the list leads
// next. The leader is not in the list. A candidate whose process died stays in the list for at most 2.5
// s.
//
// Candidates asks for 256 candidates at a time, so that Redis can serve other clients in between. A
// candidate that begins or stops waiting during the call may be in the list or not.
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
