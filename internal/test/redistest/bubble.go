// Tests run in virtual time in a bubble.

package redistest

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// Bubble is synctest.Test. Under the race detector, the process runs one goroutine at a time for as
// long as the bubble lasts: all timers of a bubble share one state of the detector, and two timers
// that fire at once crash the process (https://go.dev/issue/78156). The detector still finds the
// same races.
func Bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if RaceDetector {
		defer oneProcessor.take()()
	}
	synctest.Test(t, test)
}

var oneProcessor processorLimit

// processorLimit makes the process run one goroutine at a time while any test wants that.
type processorLimit struct {
	mu     sync.Mutex
	takers int
	before int
}

func (l *processorLimit) take() (giveBack func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.takers++; l.takers == 1 {
		l.before = runtime.GOMAXPROCS(1)
	}
	return l.giveBack
}

func (l *processorLimit) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.takers--; l.takers == 0 {
		runtime.GOMAXPROCS(l.before)
	}
}
