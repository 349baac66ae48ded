// What the Clients behind owners say of themselves.

package inspect

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
)

var whoScript = conn.NewScript("inspect/who", lua("who"), conn.Always, conn.Mixed)

// Said is what a Client says of itself, and of the hold of one of its owners. It is empty where the
// Client says nothing.
type Said struct{ Who, Note string }

const (
	// whoBound is how long Who waits. An inspection is right without it too.
	whoBound = time.Second
	// ownersPerCall is how many owners one call asks for. That takes the server a third of a millisecond.
	ownersPerCall = 256
)

// Who returns what their Clients say of these owners, as far as it can be read. It asks once for every
// 256 of them, and not at all if none is a Client's.
func Who(ctx context.Context, m *conn.Manager, space keys.Space, owners []hold.Owner) map[hold.Owner]Said {
	ctx, cancel := context.WithTimeout(ctx, whoBound)
	defer cancel()
	said := make(map[hold.Owner]Said)
	var asked []hold.Owner
	for _, o := range owners {
		if _, again := said[o]; !again && ofHoldfast(o) {
			said[o] = Said{}
			asked = append(asked, o)
		}
	}
	for len(asked) > 0 {
		n := min(len(asked), ownersPerCall)
		if !ask256(ctx, m, space, asked[:n], said) {
			break
		}
		asked = asked[n:]
	}
	return said
}

// ask256 asks for some owners, and notes what is said of them. It reports whether the server answered.
func ask256(ctx context.Context, m *conn.Manager, space keys.Space, owners []hold.Owner, said map[hold.Owner]Said) bool {
	call := &conn.Call{Script: whoScript}
	for _, o := range owners {
		client, number, _ := strings.Cut(o.String(), ":")
		call.Keys = append(call.Keys, space.ForClient(client))
		call.Args = append(call.Args, number)
	}
	if m.Run(ctx, call) != nil {
		return false
	}
	for i, o := range owners {
		said[o] = saidIn(call, i)
	}
	return true
}

// ofHoldfast reports whether a Client of Holdfast gave the owner its id. Other programs say nothing of
// themselves. They write no token either when they lock, and leave the last one standing.
func ofHoldfast(o hold.Owner) bool {
	client, _, _ := strings.Cut(o.String(), ":")
	return engine.IsClient(client)
}
