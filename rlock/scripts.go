// The lock's scripts.

package rlock

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

// How the lock is granted to a caller that does not wait, and how many stripes a name has. Each
// file begins with its contract. Whatever else happens to a hold, and to waiters, is in
// internal/lockhash.
var (
	//go:embed lua/lock.lua
	lockSource string
	//go:embed lua/stripes.lua
	stripesSource string

	lockScript    = conn.NewScript("mutex/lock", lockhash.Fenced(lockSource))
	stripesScript = conn.NewScript("mutex/stripes", stripesSource)
)
