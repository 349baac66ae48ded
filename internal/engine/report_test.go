// Slow handlers lose events, but never counts.

package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// blocked puts a call into o that goes on until proceed.
func blocked(o *outlet) (proceed func()) {
	begun, block := make(chan struct{}), make(chan struct{})
	o.put(func() { close(begun); <-block })
	<-begun
	return func() { close(block) }
}

func TestWhatComesOnTopOfAFullOutletIsDroppedAndSaid(t *testing.T) {
	dropped, called := 0, 0
	o := &outlet{lost: func(n int) { dropped += n }}
	proceed := blocked(o)
	for range outletRoom + 5 {
		o.put(func() { called++ })
	}
	proceed()
	o.close(time.Now().Add(time.Minute))
	if called != outletRoom || dropped != 5 {
		t.Errorf("%d were called, want %d; %d are said to be dropped, want 5", called, outletRoom, dropped)
	}
}

func TestWhatIsCountedIsNeverDropped(t *testing.T) {
	sum := int64(0)
	o := &outlet{add: func(_ count, n int64) { sum += n }}
	proceed := blocked(o)
	for range 2 * outletRoom {
		o.count(count{counter: countLost, kind: telemetry.Kind{Name: "mutex"}}, 1)
	}
	proceed()
	o.close(time.Now().Add(time.Minute))
	if sum != 2*outletRoom {
		t.Errorf("%d were counted, want %d", sum, 2*outletRoom)
	}
}

func TestNothingIsCalledOnceCloseWaitsNoLonger(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		var o outlet
		proceed := blocked(&o)
		o.put(func() { t.Error("called after Close") })
		o.close(time.Now())
		o.put(func() { t.Error("taken after Close") })
		proceed()
		synctest.Wait() // the outlet's goroutine has ended
	})
}
