// Package lockhash is the hash {holder: count} at a lock's name, as the locks
// that keep one share it: what can happen to a hold, and what can be asked about
// it. How a lock is granted, and what its release does, is the lock's own.
package lockhash

import (
	_ "embed"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/lease"
)

// The transitions of a hold. Each file opens with its contract.
var (
	//go:embed lua/recount.lua
	recountSource string
	//go:embed lua/renew.lua
	renewSource string
	//go:embed lua/renewmany.lua
	renewManySource string
	//go:embed lua/move.lua
	moveSource string
	//go:embed lua/state.lua
	stateSource string

	recountScript   = conn.NewScript("lock/recount", recountSource)
	renewScript     = conn.NewScript("lock/renew", renewSource)
	renewManyScript = conn.NewScript("lock/renewmany", renewManySource)
	moveScript      = conn.NewScript("lock/move", moveSource)
	stateScript     = conn.NewScript("lock/state", stateSource, conn.Mixed)
)

// TokenLife is how long the token of a name is kept that nobody locks. It is
// longer than any lease; without it the keys of names used once would stay for
// ever.
const TokenLife = 7 * 24 * time.Hour

// Hash is the key where one lock's hold stands. All calls but Move are on that key
// alone: they go on in a slot that is on the move.
type Hash string

// Recount is lease.Resource's.
func (h Hash) Recount(owner lease.Owner, leases int, length time.Duration) *conn.Call {
	return h.call(recountScript, owner.String(), leases, length.Milliseconds())
}

// Renew is lease.Resource's.
func (h Hash) Renew(owner lease.Owner, length time.Duration) *conn.Call {
	return h.call(renewScript, owner.String(), length.Milliseconds())
}

// RenewMany is lease.Grouped's.
func (h Hash) RenewMany() *conn.Script { return renewManyScript }

// Move is lease.Movable's.
func (h Hash) Move(from, to lease.Owner, length time.Duration) *conn.Call {
	return &conn.Call{
		Script: moveScript,
		Keys:   []string{string(h), h.TokenKey()},
		Args:   []any{from.String(), to.String(), length.Milliseconds(), TokenLife.Milliseconds()},
	}
}

// Key is lease.Resource's.
func (h Hash) Key() string { return string(h) }

// TokenKey is lease.Fenced's.
func (h Hash) TokenKey() string { return keys.TokenAt(string(h)) }

// State asks for what ParseState understands.
func (h Hash) State() *conn.Call { return h.call(stateScript) }

func (h Hash) call(s *conn.Script, args ...any) *conn.Call {
	return &conn.Call{Script: s, Keys: []string{string(h)}, Args: args}
}
