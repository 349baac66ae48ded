package slots

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

// The scripts. Each file opens with its contract.
var (
	//go:embed lua/numbers.lua
	numbersSource string
	//go:embed lua/turns.lua
	turnsSource string

	//go:embed lua/acquire.lua
	acquireSource string
	//go:embed lua/renew.lua
	renewSource string
	//go:embed lua/release.lua
	releaseSource string
	//go:embed lua/free.lua
	freeSource string
	//go:embed lua/look.lua
	lookSource string

	acquireScript = conn.NewScript("slots/acquire", engine.UndoingSource(lockhash.Fenced(numbersSource+turnsSource+acquireSource)))
	renewScript   = conn.NewScript("slots/renew", engine.UndoingSource(numbersSource+renewSource))
	releaseScript = conn.NewScript("slots/release", engine.UndoingSource(numbersSource+turnsSource+releaseSource), conn.Always)
	freeScript    = conn.NewScript("slots/free", engine.UndoingSource(numbersSource+freeSource), conn.Always)
	lookScript    = conn.NewScript("slots/look", engine.UndoingSource(numbersSource+lookSource), conn.Always, conn.Mixed)
)
