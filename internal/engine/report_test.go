// Slow handlers lose events, but never counts.

package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestWhatComesOnTopOfAFullOutletIsDroppedAndSaid(t *testing.T) {
	begun, block, said := make(chan struct{}), make(chan struct{}), make(chan int, 1)
	o := &outlet{lost: func(n int) { said <- n }}
	o.put(func() { close(begun); <-block })
	<-begun
	called := 0
	for range outletRoom + 5 {
		o.put(func() { called++ })
	}
	close(block)
	o.close(time.Now().Add(time.Minute))
	if called != outletRoom {
		t.Errorf("%d were called, want %d", called, outletRoom)
	}
	select {
	case n := <-said:
		if n != 5 {
			t.Errorf("%d are said to be dropped, want 5", n)
		}
	default:
		t.Error("it is not said that some were dropped")
	}
}

func TestWhatIsCountedIsNeverDropped(t *testing.T) {
	begun, block := make(chan struct{}), make(chan struct{})
	sum := int64(0)
	o := &outlet{add: func(_ count, n int64) { sum += n }}
	o.put(func() { close(begun); <-block })
	<-begun
	for range 2 * outletRoom {
		o.count(count{counter: countLost, kind: telemetry.Kind{Name: "mutex"}}, 1)
	}
	close(block)
	o.close(time.Now().Add(time.Minute))
	if sum != 2*outletRoom {
		t.Errorf("%d were counted, want %d", sum, 2*outletRoom)
	}
}

func TestNothingIsCalledOnceCloseWaitsNoLonger(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		begun, block := make(chan struct{}), make(chan struct{})
		var o outlet
		o.put(func() { close(begun); <-block })
		<-begun
		o.put(func() { t.Error("called after Close") })
		o.close(time.Now())
		o.put(func() { t.Error("taken after Close") })
		close(block)
		synctest.Wait() // the outlet's goroutine has ended
	})
}
