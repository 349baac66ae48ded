package fairlock

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// How the queue is looked at. Each file opens with its contract. What else happens
// to it, and to a hold, is in internal/lockhash.
var (
	//go:embed lua/queue.lua
	queueSource string
	//go:embed lua/place.lua
	placeSource string

	queueScript = conn.NewScript("fair/queue", queueSource, conn.Mixed)
	placeScript = conn.NewScript("fair/place", placeSource)
)
