// Connections that nobody uses any more.

package conn

import (
	"sync"
	"time"
)

// sweepEvery is how often the connections that nobody uses are looked at. The user's
// ConnMaxIdleTime and ConnMaxLifetime are exact to that.
const sweepEvery = 10 * time.Second

// sweeper calls a function again and again, from the first start to stop.
type sweeper struct {
	sweep   func(now time.Time) // what it calls
	once    sync.Once
	running sync.WaitGroup

	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	stopped bool
}

// start begins, unless that has happened.
func (s *sweeper) start() { s.once.Do(s.begin) }

func (s *sweeper) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.timer = time.AfterFunc(sweepEvery, s.run)
	}
}

// run sweeps once.
func (s *sweeper) run() {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return
	}
	s.running.Add(1)
	s.mu.Unlock()

	s.sweep(time.Now())

	s.mu.Lock()
	defer s.mu.Unlock()
	s.running.Done()
	if !s.stopped {
		s.timer.Reset(sweepEvery)
	}
}

// stop ends it, and waits for a sweep that is under way.
func (s *sweeper) stop() {
	s.mu.Lock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.running.Wait()
}
