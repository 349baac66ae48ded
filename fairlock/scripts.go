package fairlock

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// How the lock is granted, left and looked at. Each file opens with its contract.
// What else happens to a hold is in internal/lockhash.
var (
	//go:embed lua/enter.lua
	enterSource string
	//go:embed lua/leave.lua
	leaveSource string
	//go:embed lua/queue.lua
	queueSource string
	//go:embed lua/place.lua
	placeSource string

	enterScript = conn.NewScript("fair/enter", enterSource)
	leaveScript = conn.NewScript("fair/leave", leaveSource)
	queueScript = conn.NewScript("fair/queue", queueSource)
	placeScript = conn.NewScript("fair/place", placeSource)
)
