// The scripts of a quorum. All others are those of the locks on its servers.

package quorum

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// Each file opens with its contract.
var (
	//go:embed lua/mark.lua
	markSource string
	//go:embed lua/raise.lua
	raiseSource string
	//go:embed lua/turn.lua
	turnSource string

	markScript  = conn.NewScript("quorum/mark", markSource, conn.Mixed)
	raiseScript = conn.NewScript("quorum/raise", raiseSource, conn.Always)
	turnScript  = conn.NewScript("quorum/turn", turnSource)
)
