// Which scripts an election runs, and its own.

package leader

import (
	"embed"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

// The scripts of an election. Each file begins with its contract. Those without a folder are in
// internal/lockhash, which the locks share.
//
//	a candidate        leader/lua/candidate.lua and enter.lua
//	renewal            renew.lua, renewmany.lua
//	the end            leader/lua/retire.lua and release.lua
//	a term             leader/lua/tell.lua, leader/lua/ask.lua
//	queries            leader/lua/look.lua, leader/lua/candidates.lua
var (
	enterScript      = conn.NewScript("leader/enter", lockhash.Entering(lua("candidate")), conn.Mixed)
	releaseScript    = conn.NewScript("leader/release", lockhash.Releasing(lua("retire")), conn.Always)
	tellScript       = conn.NewScript("leader/tell", lua("tell"), conn.Mixed)
	lookScript       = conn.NewScript("leader/look", lua("look"), conn.Always, conn.Mixed)
	askScript        = conn.NewScript("leader/ask", lua("ask"))
	candidatesScript = conn.NewScript("leader/candidates", lua("candidates"), conn.Always, conn.Mixed)
)
