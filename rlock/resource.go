// The lock as package lease sees it: its keys and calls.

package rlock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/lockhash"
	"github.com/holdfast-go/holdfast/lease"
)

// resource is the lock as package lease sees it.
type resource struct {
	lockhash.Hash
	name      string
	at        keys.Lock
	tokenLife int64 // ms, 0 for ever
}

func newResource(name string, at keys.Lock, tokenLife time.Duration) resource {
	return resource{
		Hash:      lockhash.Hash{Key: at.Hash, Token: at.Token},
		name:      name,
		at:        at,
		tokenLife: tokenLife.Milliseconds(),
	}
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

func (r *resource) Release(owner lease.Owner, publish string) *conn.Call {
	return r.release(owner.String(), publish)
}

// release is Release for any holder, also one that is no Owner. It is on the
// lock's own key alone: it goes on in a slot that is on the move.
func (r *resource) release(holder, publish string) *conn.Call {
	return &conn.Call{
		Script: releaseScript,
		Keys:   []string{r.at.Hash},
		Args:   []any{holder, publish, r.at.Channel},
	}
}
