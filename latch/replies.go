// What look.lua answers. The layout is in its head, and here.

package latch

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/line"
)

// How a generation stands: the statuses of the reply.
const (
	open = iota
	zero
	deleted
	forgotten
)

// openIn reads the rest of the reply if the generation is open: which it is, and for how long it is so.
func openIn(call *conn.Call) (generation int64, held line.Held) {
	return call.Int(2), line.HeldByTTL(time.Duration(call.Int(3)) * time.Millisecond)
}
