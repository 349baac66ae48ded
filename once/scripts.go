package once

import (
	"embed"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

// The scripts of a Once and of a tick. Each file opens with its contract. The work under a key is
// renewed by the scripts of internal/lockhash: its record has the owner's field, as a lock has.
var (
	askScript      = conn.NewScript("once/ask", lockhash.Fenced(lua("ask")), conn.Mixed)
	completeScript = conn.NewScript("once/complete", lua("complete"), conn.Always)
	releaseScript  = conn.NewScript("once/release", lua("release"), conn.Always)
	forgetScript   = conn.NewScript("once/forget", lua("forget"))
	tickScript     = conn.NewScript("once/tick", lua("tick"), conn.Mixed)
	untickScript   = conn.NewScript("once/untick", lua("untick"), conn.Always)
)
