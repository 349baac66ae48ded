// The replies of the scripts. Each layout is in the head of the Lua file, and here.

package semaphore

import "github.com/holdfast-go/holdfast/internal/conn"

// Why take.lua refuses, if the reason is not that too few permits are free.
const (
	unset   = 1
	tooMany = 2
)

// stateIn reads the reply of state.lua: how many permits are free, and how many are taken.
func stateIn(call *conn.Call) (available, acquired int) { return int(call.Int(2)), int(call.Int(3)) }
