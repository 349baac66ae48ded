// Package lockhash is the hash {holder: count} at a lock's name, as the locks that keep such a hash
// share it: what can happen to a hold, and what can be asked about it. How a lock is granted, and
// what its release does, is up to each kind of lock.
//
// It is also the room of the queue that Mutex, FairMutex and Leader share: queue.go makes the requests,
// replies.go reads what the scripts answer and what their messages say. Packages hold and line trade in
// the types that these return, and know no layout. docs/hand-over.md describes how a lock goes from one
// process to the next.
package lockhash

import (
	"embed"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/hold"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

// The transitions of a hold. Each file begins with its contract.
var (
	recountScript   = conn.NewScript("lock/recount", lua("recount"))
	renewScript     = conn.NewScript("lock/renew", lua("renew")).Briefly(renewed)
	renewManyScript = conn.NewScript("lock/renewmany", lua("renewmany"))
	keepScript      = conn.NewScript("lock/keep", lua("keep"))
	moveScript      = conn.NewScript("lock/move", lua("move"))
	noticeScript    = conn.NewScript("lock/notice", lua("notice"), conn.Always)
	stateScript     = conn.NewScript("lock/state", lua("state"), conn.Always, conn.Mixed)
)

// Hash is the key of one lock's hold. All its calls use that key alone, so they go on in a
// slot that is on the move.
type Hash string

// Recount implements hold.Resource.
func (h Hash) Recount(owner hold.Owner, leases int, length time.Duration) *conn.Call {
	return h.RecountField(owner.String(), leases, length)
}

// RecountField is Recount of the hold in that field.
func (h Hash) RecountField(field string, leases int, length time.Duration) *conn.Call {
	return h.call(recountScript, field, leases, length.Milliseconds())
}

// Renew implements hold.Resource.
func (h Hash) Renew(owner hold.Owner, length time.Duration) *conn.Call {
	return h.RenewField(owner.String(), length)
}

// RenewField is Renew of the hold in that field.
func (h Hash) RenewField(field string, length time.Duration) *conn.Call {
	return h.call(renewScript, field, length.Milliseconds())
}

// RenewMany implements hold.Grouped.
func (h Hash) RenewMany() *conn.Script { return renewManyScript }

// Keep implements hold.Keeping.
func (h Hash) Keep(owner hold.Owner, left time.Duration) *conn.Call {
	return h.call(keepScript, owner.String(), left.Milliseconds())
}

// Key implements hold.Resource.
func (h Hash) Key() string { return string(h) }

// State returns the call whose answer ParseState understands.
func (h Hash) State() *conn.Call { return h.call(stateScript) }

func (h Hash) call(s *conn.Script, args ...any) *conn.Call {
	return &conn.Call{Script: s, Keys: []string{string(h)}, Args: args}
}
