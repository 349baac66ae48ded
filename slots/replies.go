// The replies of the scripts. Each layout is in the head of the Lua file, and here.

package slots

import "github.com/holdfast-go/holdfast/internal/conn"

// numberIn returns the number that acquire.lua has given.
func numberIn(granted *conn.Call) int { return int(granted.Int(4)) }

// sizeIn returns how many numbers there are, if that is why acquire.lua has refused; 0 otherwise.
func sizeIn(refused *conn.Call) int { return int(refused.Int(3)) }

// lookIn reads the reply of look.lua: how many numbers are taken, and who has the one that was asked for.
func lookIn(call *conn.Call) (taken int, owner string) { return int(call.Int(2)), call.Text(3) }
