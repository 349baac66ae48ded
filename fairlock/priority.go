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

// Priority puts the waiters of a FairMutex into the queue as if they had come p times 10 s earlier. So they pass
// waiters of lower priority that came only a little earlier, and stay behind those of the same priority that came
// first. Nobody starves: only callers that come within (MaxPriority - p) times 10 s after it can pass a waiter of
// priority p. The holder keeps the lock.
//
// p is from 0 to MaxPriority; otherwise Lock fails with ErrBadArgument. The default is 0, the order of
// arrival. Programs that contend for a name may use several priorities, with a FairMutex for each; waiters
// without a priority pay nothing for it. Other kinds ignore the option.
func Priority(p int) lease.Option {
	return func(s *hold.Settings) { s.Priority = p }
}

// ahead returns how much earlier a waiter of that priority seems to have come, in us, as scripts take it.
func ahead(priority int) int64 { return int64(priority) * step.Microseconds() }
