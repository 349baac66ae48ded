package once

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

// The scripts of a Once and of a tick. Each file opens with its contract. The work under a key is
// renewed by the scripts of internal/lockhash: its record has the owner's field, as a lock has.
var (
	//go:embed lua/ask.lua
	askSource string
	//go:embed lua/complete.lua
	completeSource string
	//go:embed lua/release.lua
	releaseSource string
	//go:embed lua/forget.lua
	forgetSource string
	//go:embed lua/tick.lua
	tickSource string
	//go:embed lua/untick.lua
	untickSource string

	askScript      = conn.NewScript("once/ask", lockhash.Fenced(askSource), conn.Mixed)
	completeScript = conn.NewScript("once/complete", completeSource, conn.Always)
	releaseScript  = conn.NewScript("once/release", releaseSource, conn.Always)
	forgetScript   = conn.NewScript("once/forget", forgetSource)
	tickScript     = conn.NewScript("once/tick", tickSource)
	untickScript   = conn.NewScript("once/untick", untickSource, conn.Always)
)
