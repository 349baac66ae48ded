// Which scripts a fair lock runs, and its own: those that look at the queue.

package fairlock

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// The scripts of a FairMutex. Each file begins with its contract. Those without a folder are in
// internal/lockhash, which a Mutex shares.
//
//	a try, a wait      enter.lua, and look.lua for a poll
//	re-entry           recount.lua
//	renewal            renew.lua, renewmany.lua
//	release            free.lua, release.lua
//	Attach             move.lua
//	queries            state.lua
//	of the queue       fairlock/lua/queue.lua, fairlock/lua/place.lua
var (
	//go:embed lua/queue.lua
	queueSource string
	//go:embed lua/place.lua
	placeSource string

	queueScript = conn.NewScript("fair/queue", queueSource, conn.Always, conn.Mixed)
	placeScript = conn.NewScript("fair/place", placeSource, conn.Always)
)
