// What look.lua answers. The layout is in its head, and here.

package pause

import "github.com/holdfast-go/holdfast/internal/conn"

// pauseIn reads the reply.
func pauseIn(call *conn.Call) Pause { return Parse(call.Text(2)) }
