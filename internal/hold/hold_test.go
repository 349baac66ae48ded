// How small a hold is, the margin of a lease, and times that may be zero.

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

// keyed is a resource that has a key and nothing else.
type keyed struct{ Resource }

func (keyed) Key() string { return "k" }

// wantForgotten fails the test if anything still refers to a hold after end has run on it.
func wantForgotten(t *testing.T, end func(h *hold)) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "never used"})
	defer rdb.Close()
	e, err := engine.New(rdb, nil, slog.New(slog.DiscardHandler))
	redistest.Must(t, err)
	defer e.Close()
	ended := func() weak.Pointer[hold] {
		h := &hold{engine: e, resource: keyed{}}
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
