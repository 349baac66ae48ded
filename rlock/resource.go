package rlock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/lease"
)

// tokenLife is how long the token of a name is kept that nobody locks. It is
// longer than any lease; without it the keys of names used once would stay for
// ever.
const tokenLife = 7 * 24 * time.Hour

// resource is the lock as package lease sees it.
type resource struct {
	name      string
	at        keys.Lock
	tokenLife int64 // ms, 0 for ever
}

func (r *resource) Kind() string { return "mutex" }
func (r *resource) Name() string { return r.name }
func (r *resource) Key() string  { return r.at.Hash }

func (r *resource) Waiting() engine.Waiting {
	return engine.Waiting{Key: r.at.Hash, Channel: r.at.Channel}
}

func (r *resource) Acquire(owner lease.Owner, length time.Duration) *conn.Call {
	return &conn.Call{
		Script: lockScript,
		Keys:   []string{r.at.Hash, r.at.Token},
		Args:   []any{owner.String(), length.Milliseconds(), r.tokenLife},
	}
}

func (r *resource) Recount(owner lease.Owner, leases int, length time.Duration) *conn.Call {
	return r.call(recountScript, owner.String(), leases, length.Milliseconds())
}

func (r *resource) Renew(owner lease.Owner, length time.Duration) *conn.Call {
	return r.call(renewScript, owner.String(), length.Milliseconds())
}

func (r *resource) Release(owner lease.Owner, publish string) *conn.Call {
	return r.release(owner.String(), publish)
}

// release is Release for any holder, also one that is no Owner.
func (r *resource) release(holder, publish string) *conn.Call {
	return r.call(releaseScript, holder, publish, r.at.Channel)
}

func (r *resource) Move(from, to lease.Owner, length time.Duration) *conn.Call {
	return &conn.Call{
		Script: moveScript,
		Keys:   []string{r.at.Hash, r.at.Token},
		Args:   []any{from.String(), to.String(), length.Milliseconds()},
	}
}

// call is a run of a script on the lock's own key alone: it goes on in a slot
// that is on the move.
func (r *resource) call(s *conn.Script, args ...any) *conn.Call {
	return &conn.Call{Script: s, Keys: []string{r.at.Hash}, Args: args}
}
