// The scripts that look at the queue.

package fairlock

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// How the queue is looked at. Each file begins with its contract. Whatever else happens to the
// queue, and to a hold, is in internal/lockhash.
var (
	//go:embed lua/queue.lua
	queueSource string
	//go:embed lua/place.lua
	placeSource string

	queueScript = conn.NewScript("fair/queue", queueSource, conn.AnyTime, conn.Mixed)
	placeScript = conn.NewScript("fair/place", placeSource, conn.AnyTime)
)
