// Which scripts an election runs, and its own.

package leader

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

// The scripts of an election. Each file begins with its contract. Those without a folder are in
// internal/lockhash, which the locks share.
//
//	a candidate        leader/lua/candidate.lua and enter.lua
//	renewal            renew.lua, renewmany.lua
//	the end            leader/lua/retire.lua and release.lua
//	a term             leader/lua/tell.lua, leader/lua/ask.lua
//	queries            leader/lua/look.lua, leader/lua/candidates.lua
var (
	//go:embed lua/candidate.lua
	candidateSource string
	//go:embed lua/retire.lua
	retireSource string
	//go:embed lua/tell.lua
	tellSource string
	//go:embed lua/look.lua
	lookSource string
	//go:embed lua/ask.lua
	askSource string
	//go:embed lua/candidates.lua
	candidatesSource string

	enterScript      = conn.NewScript("leader/enter", lockhash.Entering(candidateSource), conn.Mixed)
	releaseScript    = conn.NewScript("leader/release", lockhash.Releasing(retireSource), conn.Always)
	tellScript       = conn.NewScript("leader/tell", tellSource, conn.Mixed)
	lookScript       = conn.NewScript("leader/look", lookSource, conn.Always, conn.Mixed)
	askScript        = conn.NewScript("leader/ask", askSource)
	candidatesScript = conn.NewScript("leader/candidates", candidatesSource, conn.Always, conn.Mixed)
)
