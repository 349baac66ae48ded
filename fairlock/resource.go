package fairlock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/lockhash"
	"github.com/holdfast-go/holdfast/lease"
)

// queueLease is how long a place in the queue is kept without being heard of. A
// process that lives is heard of every second.
const queueLease = 5 * time.Second

// resource is the lock as package lease sees it.
type resource struct {
	lockhash.Hash
	name      string
	at        keys.FairLock
	grants    string // this Client's channel
	tokenLife int64  // ms, 0 for ever
}

var (
	_ lease.Queueing = (*resource)(nil)
	_ lease.Movable  = (*resource)(nil)
)

func newResource(name, client string, at keys.FairLock, tokenLife time.Duration) resource {
	return resource{
		Hash:      lockhash.Hash{Key: at.Hash, Token: at.Token},
		name:      name,
		at:        at,
		grants:    at.GrantTo(client),
		tokenLife: tokenLife.Milliseconds(),
	}
}

func (r *resource) Kind() string { return "fairmutex" }
func (r *resource) Name() string { return r.name }
func (r *resource) Key() string  { return r.at.Hash }

func (r *resource) Waiting() engine.Waiting {
	return engine.Waiting{Key: r.at.Queue, Channel: r.grants}
}

// Acquire asks without taking a place.
func (r *resource) Acquire(owner lease.Owner, length time.Duration) *conn.Call {
	return r.enter(owner, length, 0, &engine.Ticket{})
}

// Enter implements lease.Queueing.
func (r *resource) Enter(owner lease.Owner, length time.Duration, t *engine.Ticket) *conn.Call {
	return r.enter(owner, length, queueLease, t)
}

func (r *resource) enter(owner lease.Owner, length, place time.Duration, t *engine.Ticket) *conn.Call {
	follows := 0
	if t.Follows {
		follows = 1
	}
	args := make([]any, 0, 6+len(t.Behind))
	args = append(args, owner.String(), length.Milliseconds(), r.tokenLife, place.Milliseconds(), t.Seq, follows)
	for _, id := range t.Behind {
		args = append(args, id)
	}
	return &conn.Call{
		Script: enterScript,
		Keys:   []string{r.at.Hash, r.at.Token, r.at.Queue, r.at.Alive},
		Args:   args,
	}
}

// Release releases the lock, or leaves the queue.
func (r *resource) Release(owner lease.Owner, publish string) *conn.Call {
	return r.leave(owner.String(), publish)
}

// leave is Release for any holder, also one that is no Owner.
func (r *resource) leave(holder, publish string) *conn.Call {
	return &conn.Call{
		Script: leaveScript,
		Keys:   []string{r.at.Hash, r.at.Queue, r.at.Alive},
		Enough: 1,
		Args:   []any{holder, publish, r.at.Channel, r.at.Grant},
	}
}

// look is a call that looks at the queue.
func (r *resource) look(s *conn.Script, args ...any) *conn.Call {
	return &conn.Call{Script: s, Keys: []string{r.at.Queue, r.at.Alive}, Args: args}
}
