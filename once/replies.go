// What ask.lua answers. The layout is in its head, and here.

package once

import "github.com/holdfast-go/holdfast/internal/conn"

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
