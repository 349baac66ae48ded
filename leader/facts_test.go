// The documents state an election's numbers as they are in the code.

package leader

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestTheDocumentsSayHowLongAPlaceIsKept(t *testing.T) {
	doctest.Says(t, placeKept, "docs/guarantees.md", "A candidate's place, for {}", "leads at most {} later")
	doctest.Says(t, placeKept, "docs/keyspace.md", "a place is kept for {} from when it was last heard of. Its number")
	doctest.Says(t, placeKept, "docs/leader.md", "handed the lead, {} after that")
	doctest.Says(t, placeKept, "leader/query.go", "stays in the list for at most {}")
	doctest.Says(t, recordLife, "docs/keyspace.md", "at most {} longer than its lease")
}

// A late request may make a lost place anew. So a message that the candidate believes must be from a
// place that was kept after the last such request could come.
func TestHalfOfTheTimeOfAPlaceIsLongerThanARequestMayBeLate(t *testing.T) {
	if slack := 100 * time.Millisecond; placeKept/2 < conn.Window+slack {
		t.Errorf("a place is kept for %v, and a request may be late by %v", placeKept, conn.Window)
	}
}

// The numbers of places are positive, and exact in a double, until the year 2100 at any priority. A
// step of priority is worth 115 days.
func TestTheNumbersOfPlacesFit(t *testing.T) {
	const step = int64(10_000_000_000_000)
	if !strings.Contains(lua("candidate"), "local step = 10000000000000\n") {
		t.Error("the step is another")
	}
	for _, year := range []int{2024, 2100} {
		now := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
		if least, most := now-MaxPriority*step, now+MaxPriority*step+step; least <= 0 || most >= 1<<53 {
			t.Errorf("in %d: from %d to %d", year, least, most)
		}
	}
	redistest.Equal(t, time.Duration(step)*time.Microsecond/(24*time.Hour), 115, "%d days")
}
