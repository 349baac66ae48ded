// How small a hold is, the margin of a lease, times that may be zero, and what the documents say of leases.

package hold

import (
	"log/slog"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// A hold may end after its next time is known and before the scheduler hears of that time. The
// scheduler forgets such a hold all the same, and does not keep it until that time.
func TestAHoldThatHasEndedIsForgottenByTheScheduler(t *testing.T) {
	wantForgotten(t, func(h *hold) {
		h.gone = true
		h.schedule(time.Now().Add(time.Hour))
	})
}

// The scheduler also forgets a hold that is released while its next renewal is an hour away.
func TestAHoldThatWasReleasedIsForgottenByTheScheduler(t *testing.T) {
	wantForgotten(t, func(h *hold) {
		h.schedule(time.Now().Add(time.Hour))
		h.leave()
	})
}

// wantForgotten fails the test if anything still refers to a hold after end has run on it.
func wantForgotten(t *testing.T, end func(h *hold)) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "never used"})
	defer rdb.Close()
	e, err := engine.New(rdb, nil, slog.New(slog.DiscardHandler))
	redistest.Must(t, err)
	defer e.Close()
	ended := func() weak.Pointer[hold] {
		h := &hold{engine: e, resource: thing{}}
		end(h)
		return weak.Make(h)
	}()
	runtime.GC()
	if ended.Value() != nil {
		t.Error("a hold that has ended is kept for an hour")
	}
}

// The margin is never so large that a lease has no usable time left.
func TestMargin(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		MinLease:               6 * time.Millisecond,
		200 * time.Millisecond: 7 * time.Millisecond,
		time.Second:            15 * time.Millisecond,
		30 * time.Second:       305 * time.Millisecond,
		time.Hour:              36*time.Second + 5*time.Millisecond,
	} {
		redistest.Equal(t, margin(d), want, "%v, want %v (of %v)", want, d)
	}
}

func TestEarlierAndLater(t *testing.T) {
	var none time.Time
	one, two := time.Unix(1, 0), time.Unix(2, 0)
	for _, tc := range []struct{ a, b, earlier, later time.Time }{
		{one, two, one, two}, {two, one, one, two}, {none, one, one, one}, {one, none, one, one}, {none, none, none, none},
	} {
		if got := earlier(tc.a, tc.b); !got.Equal(tc.earlier) {
			t.Errorf("earlier of %v and %v: %v", tc.a, tc.b, got)
		}
		if got := later(tc.a, tc.b); !got.Equal(tc.later) {
			t.Errorf("later of %v and %v: %v", tc.a, tc.b, got)
		}
	}
}

func TestMain(m *testing.M) {
	logging.Disable() // go-redis logs every connection that a test refuses
	redistest.Main(m)
}

func TestTheDocumentsSayHowLongLeasesLast(t *testing.T) {
	doctest.Says(t, DefaultLease, "docs/guarantees.md", "lease of {} survives")
	doctest.Says(t, DefaultLease, "docs/redisson-interop.md", "Both are {} by default")
	doctest.Says(t, wholeAfter, "docs/architecture.md", "the whole lease {} later")
	doctest.Says(t, wholeAfter, "docs/hand-over.md", "**{} later it asks", "the renewal after {}")
	doctest.Says(t, wholeAfter, "docs/mutex.md", "renew.lua, {} later", "and {} later one for its whole lease")
	doctest.Says(t, DefaultLease, "docs/redisson-side-by-side.md", "with a lease of {}")
	doctest.Says(t, DefaultLease, "docs/how-to/leader.md", "its lease is over: {} by default")
	doctest.Says(t, DefaultLocalHandoffs, "README.md", "{} times or for 10 ms")
	doctest.Says(t, DefaultLocalHandoffs, "docs/mutex.md", "{} times or for 10 ms")
	doctest.Says(t, DefaultLocalHandoffs, "docs/guarantees.md", "{} times or for")
	doctest.Says(t, DefaultLocalHandoffs, "docs/architecture.md", "{} times or for 10 ms")
	doctest.Says(t, DefaultLocalHandoffs, "options.go", "The default is {} times or 10 ms")
	doctest.Says(t, DefaultLocalHandoffs, "lease/options.go", "The default is {} times and 10 ms")
	doctest.Says(t, DefaultCohortTime, "README.md", "1000 times or for {}")
	doctest.Says(t, DefaultCohortTime, "docs/guarantees.md", "1000 times or for {}")
	doctest.Says(t, DefaultCohortTime, "docs/architecture.md", "1000 times or for {}")
	doctest.Says(t, DefaultCohortTime, "options.go", "The default is 1000 times or {}")
	doctest.Says(t, DefaultCohortTime, "lease/options.go", "The default is 1000 times and {}")
	doctest.Says(t, MaxLocalHandoffs, "lease/options.go", "n is at most {}")
}
