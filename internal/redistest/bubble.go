// Tests in virtual time.

package redistest

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// Bubble is synctest.Test. With the race detector, the process runs one goroutine at a time
// meanwhile: all timers of a bubble share one state of the detector, and two that fire at once
// crash the process (https://go.dev/issue/78156). The detector finds the same races all the
// same.
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
