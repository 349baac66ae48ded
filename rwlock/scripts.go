package rwlock

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// The scripts of the lock. Each file opens with its contract. A script of the read side has the
// name of the write side's, with an r before it. The write side is recounted and renewed as a Mutex is,
// by the scripts of internal/lockhash. Several scripts begin with holders, marks or both.
var (
	//go:embed lua/holders.lua
	holders string
	//go:embed lua/marks.lua
	marks string

	//go:embed lua/lock.lua
	lockSource string
	//go:embed lua/release.lua
	releaseSource string

	//go:embed lua/rlock.lua
	rlockSource string
	//go:embed lua/rrecount.lua
	rrecountSource string
	//go:embed lua/rrenew.lua
	rrenewSource string
	//go:embed lua/rrelease.lua
	rreleaseSource string

	//go:embed lua/look.lua
	lookSource string
	//go:embed lua/state.lua
	stateSource string

	lockScript    = conn.NewScript("rwlock/lock", holders+marks+lockSource)
	releaseScript = conn.NewScript("rwlock/release", holders+marks+releaseSource, conn.Always)

	rlockScript    = conn.NewScript("rwlock/rlock", marks+rlockSource)
	rrecountScript = conn.NewScript("rwlock/rrecount", holders+rrecountSource)
	rrenewScript   = conn.NewScript("rwlock/rrenew", holders+rrenewSource)
	rreleaseScript = conn.NewScript("rwlock/rrelease", holders+marks+rreleaseSource, conn.Always)

	lookScript  = conn.NewScript("rwlock/look", holders+lookSource, conn.Always)
	stateScript = conn.NewScript("rwlock/state", holders+stateSource, conn.Always, conn.Mixed)
)
