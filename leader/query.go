// Queries: who leads, and who waits to.

package leader

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
)

// Info describes the present leader and its term. The zero Info means that nobody leads.
type Info struct {
	// Identity and Value are the texts that the options Identity and Value set for the leader.
	Identity string
	Value    string
	// Priority is the leader's priority.
	Priority int
	// Token is the fencing token of the leader's term. It is greater than the token of every earlier term
	// of the same name. Token is 0 if nobody leads.
	Token int64
	// Since is when the leader's term began, by the clock of the Redis server.
	Since time.Time
	// Left is how much time remains until the leader's term ends, if the leader does not renew its lease
	// again.
	Left time.Duration
}

// Leads reports whether somebody leads. It returns false for the zero Info.
func (i Info) Leads() bool { return i.Token != 0 }

// Leader asks Redis who leads, and returns the answer. If nobody leads, the error matches ErrNoLeader. A
// candidate counts as the leader from shortly before its work begins until its work has returned, or until
// its lease is over. Leader sends one request to Redis's master. It waits for the answer as long as ctx
// allows, but for at most 3 s.
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
	// Identity and Priority are what the options Identity and Priority set for the candidate.
	Identity string
	Priority int
	// Owner is the id under which the candidate waits in Redis.
	Owner lease.Owner
}

// Candidates returns the candidates that wait to lead, in all processes. The first candidate in the list
// leads next. The present leader is not in the list. A candidate whose process has died stays in the list
// for at most 2.5 s.
//
// Candidates asks Redis for 256 candidates at a time, so that Redis can serve other clients between two
// requests. A candidate that begins or stops waiting during the call may be in the list or not.
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
