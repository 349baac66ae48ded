// Which scripts a lock runs, and its own.

package rlock

import (
	"embed"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

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
	lockScript    = conn.NewScript("mutex/lock", lockhash.Fenced(lua("lock"))).Briefly(granted)
	stripesScript = conn.NewScript("mutex/stripes", lua("stripes"))

	_ = lockhash.NewBundle(lockScript)
)
