// What has happened at a name, as holdfast watch prints it and as holdfast top shows it.

package view

import (
	"fmt"

	"github.com/holdfast-go/holdfast"
)

// Event returns what has happened at a name, for people.
func Event(e holdfast.Event) string {
	switch e.What {
	case holdfast.EventGranted:
		return "granted to " + HolderOfKind(e.Kind, e.Holder)
	case holdfast.EventReleased:
		return "released by " + HolderOfKind(e.Kind, e.From)
	case holdfast.EventPassed:
		return "passed from " + Holder(e.From) + " to " + Holder(e.Holder)
	case holdfast.EventExpired:
		return "ended without release: the time of " + HolderOfKind(e.Kind, e.From) + " was over"
	case holdfast.EventLost:
		return "lost by " + HolderOfKind(e.Kind, e.From) + ", or released: Redis has dropped keys"
	case holdfast.EventUnseen:
		if e.Times == 1 {
			return "released (short hold, not seen)"
		}
		return fmt.Sprintf("released %d times (short holds, not seen)", e.Times)
	case holdfast.EventWaits:
		return "waited for by " + Waiter(e.Waiter)
	case holdfast.EventCounted:
		return count(e)
	}
	text := string(e.What) // done, failed; tripped, broken
	if e.From != (holdfast.Holder{}) {
		text += " by " + Holder(e.From)
	}
	return text
}

// count returns a changed count, for people.
func count(e holdfast.Event) string {
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
