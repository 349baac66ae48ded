package barrier

import (
	"embed"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

// The scripts of the barrier. Each file opens with its contract.
var (
	enterScript   = conn.NewScript("barrier/enter", engine.UndoingSource(lua("generation", "enter")))
	lookScript    = conn.NewScript("barrier/look", engine.UndoingSource(lua("generation", "look")), conn.Always)
	breakScript   = conn.NewScript("barrier/break", engine.UndoingSource(lua("generation", "break")), conn.Always)
	releaseScript = conn.NewScript("barrier/release", engine.UndoingSource(lua("generation", "release")), conn.Always)
	renewScript   = conn.NewScript("barrier/renew", lua("renew"))
	stateScript   = conn.NewScript("barrier/state", lua("state"), conn.Always)
)
