// The lock's scripts.

package rlock

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// How the lock is granted and released. Each file opens with its contract. What
// else happens to a hold is in internal/lockhash.
var (
	//go:embed lua/lock.lua
	lockSource string
	//go:embed lua/release.lua
	releaseSource string
	//go:embed lua/stripes.lua
	stripesSource string

	lockScript    = conn.NewScript("mutex/lock", lockSource)
	releaseScript = conn.NewScript("mutex/release", releaseSource)
	stripesScript = conn.NewScript("mutex/stripes", stripesSource)
)
