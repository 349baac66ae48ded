// How long something took, as percentiles.

package clienttest

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Spread is a set of durations from which the tests report percentiles.
type Spread struct {
	mu  sync.Mutex
	All []time.Duration

	starvable bool          // addBeyond gave the slack of each
	own       time.Duration // the longest duration after its slack is subtracted
}

// Add adds a duration.
func (s *Spread) Add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.All = append(s.All, d)
}

// AddBeyond adds a duration in which this process may have been starved for slack. So a reader can
// tell a worst case of the machine from a worst case of ours.
func (s *Spread) AddBeyond(d, slack time.Duration) {
	s.Add(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starvable = true
	s.own = max(s.own, d-slack)
}

// At returns the percentile of the durations; 100 is the worst.
func (s *Spread) At(percentile float64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.All) == 0 {
		return 0
	}
	slices.Sort(s.All)
	i := int(percentile / 100 * float64(len(s.All)))
	return s.All[min(i, len(s.All)-1)]
}

func (s *Spread) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	n := len(s.All)
	text := fmt.Sprintf("p50 %v, p99 %v, worst %v of %d", round(s.At(50)), round(s.At(99)), round(s.At(100)), n)
	if s.starvable {
		text += fmt.Sprintf(" (beyond starvation at most %v)", round(s.own))
	}
	return text
}
