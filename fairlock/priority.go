// Priorities: who goes before those who came a little earlier.

package fairlock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

// MaxPriority is the highest priority of a waiter.
const MaxPriority = hold.MaxPriority

// step is how much earlier a waiter seems to have come for each step of its priority.
const step = 10 * time.Second

// Priority puts a waiter of a FairMutex into the queue as if the waiter had come p times 10 s earlier. So
// the waiter passes waiters of lower priority that came only a little earlier. Waiters of the same priority
// stay in the order in which they came. Nobody starves: a waiter of priority p can be passed only by
// callers that come within (MaxPriority - p) times 10 s after that waiter. The holder keeps the lock.
//
// If p is not from 0 to MaxPriority, Lock fails with ErrBadArgument. The default is 0, which is the order
// of arrival. A FairMutex has one priority, and programs may use several FairMutexes of the same name with
// different priorities. The option costs nothing for waiters without a priority. Other kinds ignore the
// option.
func Priority(p int) lease.Option {
	return func(s *hold.Settings) { s.Priority = p }
}

// ahead returns how much earlier a waiter of that priority seems to have come, in us, as scripts take it.
func ahead(priority int) int64 { return int64(priority) * step.Microseconds() }
