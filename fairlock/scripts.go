// Which scripts a fair lock runs, and its own: those that look at the queue.

package fairlock

import (
	"embed"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

// The scripts of a FairMutex. Each file begins with its contract. Those without a folder are in
// internal/lockhash, which a Mutex shares.
//
//	a try, a wait      enter.lua, and look.lua for a poll
//	with a priority    fairlock/lua/priority.lua and enter.lua
//	re-entry           recount.lua
//	renewal            renew.lua, renewmany.lua
//	release            free.lua, release.lua
//	Attach             move.lua
//	queries            state.lua
//	of the queue       fairlock/lua/queue.lua, fairlock/lua/place.lua
var (
	enterScript = conn.NewScript("fair/enter", lockhash.Entering(lua("priority")), conn.Mixed)
	queueScript = conn.NewScript("fair/queue", lua("queue"), conn.Always, conn.Mixed)
	placeScript = conn.NewScript("fair/place", lua("place"), conn.Always)
)
