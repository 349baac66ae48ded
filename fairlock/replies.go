// The replies of the scripts that look at the queue. Each layout is in the head of the Lua file, and
// here.

package fairlock

import (
	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/lease"
)

// placeIn reads the reply of place.lua: how many wait, how many are before the owner, and whether the
// owner waits at all.
func placeIn(call *conn.Call) (waiting, ahead int, waits bool) {
	before := call.Int(3)
	return int(call.Int(2)), int(max(before, 0)), before >= 0
}

// addWaiters adds to owners those in the reply of queue.lua. It returns where the next call goes on;
// "" if there are no more.
func addWaiters(owners []lease.Owner, call *conn.Call) (more []lease.Owner, next string, err error) {
	for i := 3; i < call.Reply.Len(); i++ {
		owner, err := lease.ParseOwner(call.Text(i))
		if err != nil {
			return nil, "", err
		}
		owners = append(owners, owner)
	}
	return owners, call.Text(2), nil
}
