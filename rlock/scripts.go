// Which scripts a lock runs, and its own.

package rlock

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

// The scripts of a Mutex. Each file begins with its contract. Those without a folder are in
// internal/lockhash, which a FairMutex shares.
//
//	a try              rlock/lua/lock.lua; a wait begins with it
//	a wait             enter.lua, and look.lua for a poll, by the head of the line
//	re-entry           recount.lua
//	renewal            renew.lua, renewmany.lua
//	release            free.lua, release.lua
//	Attach             move.lua
//	queries            state.lua
//	the stripes        rlock/lua/stripes.lua
var (
	//go:embed lua/lock.lua
	lockSource string
	//go:embed lua/stripes.lua
	stripesSource string

	lockScript    = conn.NewScript("mutex/lock", lockhash.Fenced(lockSource), conn.Clocked).Briefly(granted)
	stripesScript = conn.NewScript("mutex/stripes", stripesSource)

	_ = lockhash.NewBundle(lockScript)
)
