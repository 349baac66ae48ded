// The sweeper: it ends connections that are no longer used.

package conn

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn/server"
)

// sweeper calls a function every sweepEvery, from the first start to stop.
type sweeper struct {
	sweep   func(now time.Time) // the function that it calls
	once    sync.Once
	running sync.WaitGroup

	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	stopped bool
}

func (s *sweeper) start() { s.once.Do(s.begin) }

func (s *sweeper) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.timer = time.AfterFunc(server.SweepEvery, s.run)
	}
}

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
		s.timer.Reset(server.SweepEvery)
	}
}

// stop ends the sweeper, and waits for a sweep that is under way.
func (s *sweeper) stop() {
	s.mu.Lock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.running.Wait()
}
