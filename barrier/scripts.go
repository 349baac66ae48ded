package barrier

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// The scripts of the barrier. Each file opens with its contract.
var (
	//go:embed lua/generation.lua
	generationSource string

	//go:embed lua/enter.lua
	enterSource string
	//go:embed lua/look.lua
	lookSource string
	//go:embed lua/break.lua
	breakSource string
	//go:embed lua/release.lua
	releaseSource string
	//go:embed lua/renew.lua
	renewSource string
	//go:embed lua/state.lua
	stateSource string

	enterScript   = conn.NewScript("barrier/enter", engine.UndoingSource(generationSource+enterSource))
	lookScript    = conn.NewScript("barrier/look", engine.UndoingSource(generationSource+lookSource), conn.Always)
	breakScript   = conn.NewScript("barrier/break", engine.UndoingSource(generationSource+breakSource), conn.Always)
	releaseScript = conn.NewScript("barrier/release", engine.UndoingSource(generationSource+releaseSource), conn.Always)
	renewScript   = conn.NewScript("barrier/renew", renewSource)
	stateScript   = conn.NewScript("barrier/state", stateSource, conn.Always)
)
