// The replies of the scripts. Each layout is in the head of the Lua file, and here.

package rwlock

import (
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// lookIn reads the reply of look.lua: whether a writer holds the lock, and how many leases the holder
// that was asked for has on it.
func lookIn(call *conn.Call) (locked bool, count int) { return call.Int(2) == 1, int(call.Int(3)) }

// holdersIn reads the reply of state.lua: the holders in it whose lease lasts, and the cursor of the
// next call.
func holdersIn(call *conn.Call) (all []holder, cursor string) {
	const noEnding, over = -1, -2
	for i := 3; i+2 < call.Reply.Len(); i += 3 {
		left := call.Int(i + 2)
		if left == over {
			continue
		}
		h := holder{field: call.Text(i), until: call.ServerTime() + left*1000}
		if left == noEnding {
			h.until = noEnd
		}
		h.id, h.writes = strings.CutSuffix(h.field, writes)
		h.count, _ = strconv.Atoi(call.Text(i + 1))
		all = append(all, h)
	}
	return all, call.Text(2)
}
