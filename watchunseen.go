// Unseen: holds that began and ended between two looks, of which nothing but the message of their release is known.

package holdfast

import (
	"slices"

	"github.com/holdfast-go/holdfast/internal/inspect"
)

// ledger sets the releases that were announced against those that looks have found. A look may find a release before
// its message comes, so a release without a message is kept until the next look. If in doubt, it counts too few.
type ledger struct {
	heard inspect.Counts // announced, and not set against anything yet
	owed  inspect.Counts // found by the last look, and not announced by then
}

// unseen returns an event for the releases of each family that no difference between two inspections explains.
func (l *ledger) unseen(before, after Inspection, found []Event) (events []Event) {
	stayed := len(without(before.Holders, after.Holders)) < len(before.Holders)
	for f := range inspect.Families {
		ends := 0
		for _, e := range found {
			if familyOf(e.Kind) == f && (slices.Contains(endings, e.What) || e.What == EventCounted) {
				ends++
			}
		}
		if f == inspect.OfRW {
			ends = min(ends, 1) // only the last of the readers is announced
		}
		heard := max(0, l.heard[f]-l.owed[f])
		times := heard - ends
		l.heard[f], l.owed[f] = 0, max(0, -times)
		// A lock that one has held all the while was not free in between. Permits are announced by those who set or
		// collect them too.
		if times <= 0 || f != inspect.OfPermits && stayed || f == inspect.OfPermits && len(found) > 0 {
			continue
		}
		events = append(events, Event{What: EventUnseen, Name: after.Name, Kind: kindOf(f, before, after), At: after.At, Times: times})
	}
	return events
}

// endings are how a hold ends.
var endings = []Happening{EventReleased, EventPassed, EventExpired}

func familyOf(k Kind) inspect.Family {
	switch k {
	case KindMutex, KindLeader:
		return inspect.OfLocks
	case KindRWLock:
		return inspect.OfRW
	case KindPermits, KindSemaphore, KindCount:
		return inspect.OfPermits
	}
	return inspect.Families
}

// kindOf returns the kind of what was held unseen.
func kindOf(f inspect.Family, before, after Inspection) Kind {
	for _, k := range []Kind{after.Kind, before.Kind} {
		if familyOf(k) == f {
			return k
		}
	}
	return [...]Kind{KindMutex, KindRWLock, KindPermits}[f]
}

// between puts what was not seen where it happened: after what ended, and before what began.
func between(events, unseen []Event) []Event {
	at := slices.IndexFunc(events, func(e Event) bool { return e.What != EventReleased && e.What != EventExpired })
	if at < 0 {
		at = len(events)
	}
	return slices.Insert(events, at, unseen...)
}
