// The documents state a FairMutex's numbers as they are in the code.

package fairlock

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

func TestTheDocumentsSayHowLongAPlaceIsKept(t *testing.T) {
	doctest.Says(t, placeKept, "docs/guarantees.md", "(a FairMutex: {})", "A waiter's place, for {}")
	doctest.Says(t, placeKept, "docs/keyspace.md", "place is kept, {} from when it was last heard of")
	doctest.Says(t, placeKept, "docs/fairlock.md", "passed over {} after it was last heard of", "what is left of the {}")
	doctest.Says(t, placeKept, "docs/hand-over.md", "(a FairMutex: {})")
	doctest.Says(t, placeKept, "docs/redisson-interop.md", "(a `FairMutex`: {})")
	doctest.Says(t, placeKept, "fairlock/fairlock.go", "has sent nothing for {}")
	doctest.Says(t, placeKept, "internal/lockhash/lua/queue.lua", "kept for longer than {}")
}

// A late request may make a lost place anew. So a message that the waiter believes must be from a
// place that was kept after the last such request could come.
func TestHalfOfTheTimeOfAPlaceIsLongerThanARequestMayBeLate(t *testing.T) {
	if slack := 100 * time.Millisecond; placeKept/2 < conn.Window+slack {
		t.Errorf("a place is kept for %v, and a request may be late by %v", placeKept, conn.Window)
	}
}

func TestTheDocumentsSayWhatAPriorityIsWorth(t *testing.T) {
	doctest.Says(t, step, "docs/fairlock.md", "up to {} before it for each step")
	doctest.Says(t, step, "docs/guarantees.md", "counts as {} for each step")
	doctest.Says(t, step, "docs/keyspace.md", "less by {} for each step")
}
