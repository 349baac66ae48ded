// The documents state an election's numbers as they are in the code. And what the error of a Run matches.

package leader

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
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

// The error of a Run whose context has ended matches the context's, whatever the campaign had failed by.
func TestTheErrorOfARunMatchesItsContexts(t *testing.T) {
	e := New(new(engine.Engine), "x", "x", hold.Settings{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, why := range []error{context.Canceled, errs.Denied, errs.Closed, errs.NotReplicated} {
		out := e.notElected(ctx, why, 1)
		if !out.over || !errors.Is(out.err, why) || !errors.Is(out.err, context.Canceled) {
			t.Errorf("%v: %+v", why, out)
		}
	}
	if out := e.notElected(ctx, errs.Lost, 1); out.over {
		t.Errorf("a lease that was over: %v, before it has looked whether its context has ended", out.err)
	}
}
