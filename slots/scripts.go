package slots

import (
	"embed"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

// The scripts. Each file opens with its contract.
var (
	acquireScript = conn.NewScript("slots/acquire", engine.UndoingSource(lockhash.Fenced(lua("numbers", "turns", "acquire"))))
	renewScript   = conn.NewScript("slots/renew", engine.UndoingSource(lua("numbers", "renew")))
	releaseScript = conn.NewScript("slots/release", engine.UndoingSource(lua("numbers", "turns", "release")), conn.Always)
	freeScript    = conn.NewScript("slots/free", engine.UndoingSource(lua("numbers", "free")), conn.Always)
	lookScript    = conn.NewScript("slots/look", engine.UndoingSource(lua("numbers", "look")), conn.Always, conn.Mixed)
)
