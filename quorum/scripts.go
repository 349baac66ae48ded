// The scripts of a quorum. All others are those of the locks on its servers.

package quorum

import (
	"embed"

	"github.com/holdfast-go/holdfast/internal/conn"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

// Each file opens with its contract.
var (
	markScript  = conn.NewScript("quorum/mark", lua("mark"), conn.Mixed)
	raiseScript = conn.NewScript("quorum/raise", lua("raise"), conn.Always)
	turnScript  = conn.NewScript("quorum/turn", lua("turn"))
)
