// What has happened at a name, as holdfast watch prints it and as holdfast top shows it.

package view

import (
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/observe"
)

// Event returns what has happened at a name, for people.
func Event(e observe.Event) string {
	switch e.What {
	case observe.Granted:
		return "granted to " + HolderOfKind(e.Kind, e.Holder)
	case observe.Released:
		return "released by " + HolderOfKind(e.Kind, e.From)
	case observe.Passed:
		return "passed from " + Holder(e.From) + " to " + Holder(e.Holder)
	case observe.Expired:
		return "ended without release: the time of " + HolderOfKind(e.Kind, e.From) + " was over"
	case observe.Unseen:
		if e.Times == 1 {
			return "released (short hold, not seen)"
		}
		return fmt.Sprintf("released %d times (short holds, not seen)", e.Times)
	case observe.Waits:
		return "waited for by " + Waiter(e.Waiter)
	case observe.Counted:
		return count(e)
	}
	text := string(e.What) // done, failed; tripped, broken
	if e.From != (holdfast.Holder{}) {
		text += " by " + Holder(e.From)
	}
	return text
}

// count returns a changed count, for people.
func count(e observe.Event) string {
	text := fmt.Sprint(e.Value)
	switch e.Kind {
	case holdfast.KindLatch:
		text += " to come"
	case holdfast.KindPermits:
		text += " in all"
	case holdfast.KindSemaphore:
		text += fmt.Sprintf(" of %d free", e.All)
	case holdfast.KindBarrier:
		text += fmt.Sprintf(" of %d have come", e.All)
	}
	return fmt.Sprintf("%s, was %d", text, e.Was)
}
