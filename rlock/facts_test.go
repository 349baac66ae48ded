// The documents state a Mutex's numbers as they are in the code.

package rlock

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestTheDocumentsSayHowLongAPlaceIsKept(t *testing.T) {
	doctest.Says(t, placeKept, "docs/guarantees.md", "stays with it for at most {}", "Its process's turn, for {}")
	doctest.Says(t, placeKept, "docs/keyspace.md", "{} for a Mutex")
	doctest.Says(t, placeKept, "docs/architecture.md", "lapses {} after it was last kept")
	doctest.Says(t, placeKept, "docs/hand-over.md", "keeps the place for {}")
	doctest.Says(t, placeKept, "docs/redisson-interop.md", "keeps it for at most {}")
	doctest.Says(t, placeKept, "docs/redisson-side-by-side.md", "the lock is Y's for at most {}")
}

// A late request may make a lost place anew. So a message that the waiter believes must be from a
// place that was kept after the last such request could come.
func TestHalfOfTheTimeOfAPlaceIsLongerThanARequestMayBeLate(t *testing.T) {
	if slack := 100 * time.Millisecond; placeKept/2 < conn.Window+slack {
		t.Errorf("a place is kept for %v, and a request may be late by %v", placeKept, conn.Window)
	}
}

func TestMain(m *testing.M) { redistest.Main(m) }
