package rlock

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// The transitions of the lock. Each file opens with its contract.
var (
	//go:embed lua/lock.lua
	lockSource string
	//go:embed lua/recount.lua
	recountSource string
	//go:embed lua/renew.lua
	renewSource string
	//go:embed lua/release.lua
	releaseSource string
	//go:embed lua/move.lua
	moveSource string
	//go:embed lua/state.lua
	stateSource string

	lockScript    = conn.NewScript("mutex/lock", lockSource)
	recountScript = conn.NewScript("mutex/recount", recountSource)
	renewScript   = conn.NewScript("mutex/renew", renewSource)
	releaseScript = conn.NewScript("mutex/release", releaseSource)
	moveScript    = conn.NewScript("mutex/move", moveSource)
	stateScript   = conn.NewScript("mutex/state", stateSource)
)
