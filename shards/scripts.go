package shards

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
	joinScript    = conn.NewScript("shards/join", engine.UndoingSource(lockhash.Fenced(lua("table", "join"))))
	renewScript   = conn.NewScript("shards/renew", engine.UndoingSource(lua("table", "renew")))
	leaveScript   = conn.NewScript("shards/leave", engine.UndoingSource(lua("table", "leave")), conn.Always)
	balanceScript = conn.NewScript("shards/balance", engine.UndoingSource(lockhash.Fenced(lua("table", "plan", "balance"))))
	lookScript    = conn.NewScript("shards/look", engine.UndoingSource(lua("table", "look")), conn.Always, conn.Mixed)
)
