package rwlock

import (
	"embed"

	"github.com/holdfast-go/holdfast/internal/conn"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

// The scripts of the lock. Each file opens with its contract. A script of the read side has the
// name of the write side's, with an r before it. The write side is recounted and renewed as a Mutex is,
// by the scripts of internal/lockhash. Several scripts begin with holders, marks or both.
var (
	lockScript    = conn.NewScript("rwlock/lock", lua("holders", "marks", "lock"))
	releaseScript = conn.NewScript("rwlock/release", lua("holders", "marks", "release"), conn.Always)

	rlockScript    = conn.NewScript("rwlock/rlock", lua("marks", "rlock"))
	rrecountScript = conn.NewScript("rwlock/rrecount", lua("holders", "rrecount"))
	rrenewScript   = conn.NewScript("rwlock/rrenew", lua("holders", "rrenew"))
	rreleaseScript = conn.NewScript("rwlock/rrelease", lua("holders", "marks", "rrelease"), conn.Always)

	lookScript  = conn.NewScript("rwlock/look", lua("holders", "look"), conn.Always)
	stateScript = conn.NewScript("rwlock/state", lua("holders", "state"), conn.Always, conn.Mixed)
)
