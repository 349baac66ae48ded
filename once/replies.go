// What ask.lua and tick.lua answer. Each layout is in the head of the Lua file, and here.

package once

import (
	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/pause"
)

// What ask.lua says of a key that it does not grant.
const (
	underWay = iota
	done
	failed
	mismatch
)

// refusalIn reads a reply that does not grant the key: why; the token of the work that is under way or
// done; and the result, or the text of its error.
func refusalIn(call *conn.Call) (why, token int64, data string) {
	return call.Int(4), call.Int(3), call.Text(5)
}

// pausedIn reads a reply of tick.lua that does not grant the tick: an error if its name is paused, else nil.
func pausedIn(call *conn.Call) error { return pause.Parse(call.Text(2)).Err() }
