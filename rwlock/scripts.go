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
// by the scripts of internal/lockhash. Several begin with left, holders or marks.
var (
	lockScript    = conn.NewScript("rwlock/lock", lua("left", "holders", "marks", "lock"))
	releaseScript = conn.NewScript("rwlock/release", lua("left", "holders", "marks", "release"), conn.Always)

	rlockScript    = conn.NewScript("rwlock/rlock", lua("left", "marks", "rlock"))
	rrecountScript = conn.NewScript("rwlock/rrecount", lua("left", "rrecount"))
	rrenewScript   = conn.NewScript("rwlock/rrenew", lua("left", "rrenew"))
	rreleaseScript = conn.NewScript("rwlock/rrelease", lua("left", "holders", "marks", "rrelease"), conn.Always)

	lookScript  = conn.NewScript("rwlock/look", lua("left", "look"), conn.Always)
	stateScript = conn.NewScript("rwlock/state", lua("left", "state"), conn.Always, conn.Mixed)
)
