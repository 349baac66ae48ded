// Unseen: holds that began and ended between two looks, of which nothing but the message of their release is known.

package observe

import (
	"slices"

	"github.com/holdfast-go/holdfast"
)

// ledger sets the releases that were announced against those that looks have found. A message may come after the look
// that has found its release already, so what it owes is kept until the next look. If in doubt, it counts too few.
type ledger struct {
	heard counts // announced, and not set against anything yet
	owed  counts // found by the last look, and not announced by then
}

// unseen returns an event for the releases of each family that no difference between two inspections explains.
func (l *ledger) unseen(before, after holdfast.Inspection, found []Event) (events []Event) {
	stayed := len(without(before.Holders, after.Holders)) < len(before.Holders)
	for f := range families {
		ends := 0
		for _, e := range found {
			if familyOf(e.Kind) == f && (slices.Contains(endings, e.What) || e.What == Counted) {
				ends++
			}
		}
		if f == ofRW {
			ends = min(ends, 1) // only the last of the readers is announced
		}
		heard := max(0, l.heard[f]-l.owed[f])
		times := heard - ends
		l.heard[f], l.owed[f] = 0, max(0, -times)
		// A lock that one has held all the while was not free in between. Permits are announced by those who set or
		// collect them too.
		if times <= 0 || f != ofPermits && stayed || f == ofPermits && len(found) > 0 {
			continue
		}
		events = append(events, Event{What: Unseen, Name: after.Name, Kind: kindOf(f, before, after), At: after.At, Times: times})
	}
	return events
}

// endings are how a hold ends.
var endings = []What{Released, Passed, Expired}

func familyOf(k holdfast.Kind) family {
	switch k {
	case holdfast.KindMutex, holdfast.KindLeader:
		return ofLocks
	case holdfast.KindRWLock:
		return ofRW
	case holdfast.KindPermits, holdfast.KindSemaphore, holdfast.KindCount:
		return ofPermits
	}
	return families
}

// kindOf returns the kind of what was held unseen.
func kindOf(f family, before, after holdfast.Inspection) holdfast.Kind {
	for _, k := range []holdfast.Kind{after.Kind, before.Kind} {
		if familyOf(k) == f {
			return k
		}
	}
	return [...]holdfast.Kind{holdfast.KindMutex, holdfast.KindRWLock, holdfast.KindPermits}[f]
}

// between puts what was not seen where it happened: after what ended, and before what began.
func between(events, unseen []Event) []Event {
	at := slices.IndexFunc(events, func(e Event) bool { return e.What != Released && e.What != Expired })
	if at < 0 {
		at = len(events)
	}
	return slices.Insert(events, at, unseen...)
}
