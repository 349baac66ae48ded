// One name in detail, as holdfast inspect prints it and as holdfast top shows it.

package view

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Detail returns all that is known of a name, in lines.
func Detail(i holdfast.Inspection) string {
	text := fmt.Sprintf("%s: %s", Name(i.Name), i.Kind)
	switch i.Kind {
	case holdfast.KindMutex, holdfast.KindRWLock, holdfast.KindLeader, holdfast.KindFree, holdfast.KindUnknown:
	case holdfast.KindOnce:
		text += ", " + i.State
	default:
		text += ", " + state(i)
	}
	text += "\n"
	if i.Paused != nil {
		text += "  " + Paused(i) + "\n"
	}
	if i.State == "asked" {
		text += "  its holder is asked to release it\n"
	}
	for _, h := range i.Holders {
		text += fmt.Sprintf("  held by  %s", HolderOfKind(i.Kind, h))
		if alone := h.Write || i.Kind != holdfast.KindRWLock; alone && !i.HeldSince.IsZero() {
			text += fmt.Sprintf(", since %s (%s)", i.HeldSince.UTC().Format(time.RFC3339), Ago(i.HeldSince, i.At))
		}
		text += fmt.Sprintf(", %s left\n", Duration(h.Remaining))
	}
	if len(i.Holders) == 0 && Left(i) != None {
		text += fmt.Sprintf("  lasts    %s\n", Left(i))
	}
	if i.Waiters > 0 {
		text += fmt.Sprintf("  waiting  %d\n", i.Waiters)
	}
	for n, w := range i.Queue {
		text += fmt.Sprintf("  %5d.  %s", n+1, Waiter(w))
		if !w.Since.IsZero() {
			text += ", came " + Ago(w.Since, i.At)
		}
		text += "\n"
	}
	return text
}
