package lease

import (
	"log/slog"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// A hold that ends between the moment in which its next time is known and the moment in
// which the scheduler hears of it is forgotten all the same, and not only when that time
// comes.
func TestAHoldThatHasEndedIsForgottenByTheScheduler(t *testing.T) {
	wantForgotten(t, func(h *hold) {
		h.gone = true
		h.schedule(time.Now().Add(time.Hour))
	})
}

// So is one that is released while its next renewal is an hour away.
func TestAHoldThatWasReleasedIsForgottenByTheScheduler(t *testing.T) {
	wantForgotten(t, func(h *hold) {
		h.schedule(time.Now().Add(time.Hour))
		h.leave()
	})
}

// keyed is a resource that has a key and nothing else.
type keyed struct{ Resource }

func (keyed) Key() string { return "k" }

// wantForgotten fails the test unless nothing refers to a hold after what end does to it.
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
