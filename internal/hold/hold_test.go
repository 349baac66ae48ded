package hold

import (
	"log/slog"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/engine"
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
	if err != nil {
		t.Fatal(err)
	}
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
