// How the scheduler notices that the machine slept, or that its clock was set.

package renewal

import "time"

const (
	// clockWatch is the longest sleep while anything is scheduled. Timers stand still while the
	// machine is suspended, so this is also how soon after it resumes the scheduler looks at
	// leases that may be long over. All schedulers of a process wake up for it at the same instants:
	// a wake-up of the process costs ten times what it costs a scheduler to look.
	clockWatch = 50 * time.Millisecond

	// clockLead is how far the wall clock may run ahead between two wake-ups. A clock that is
	// being slewed gains a fraction of a millisecond in that time.
	clockLead = 50 * time.Millisecond
)

// nextWatch returns the next multiple of clockWatch by the wall clock.
func nextWatch(now time.Time) time.Time {
	return now.Add(clockWatch - time.Duration(now.UnixNano())%clockWatch)
}

// ranAhead reports whether more wall time than monotonic time has passed than a running machine
// explains. Then either the machine was suspended, which the monotonic clock does not count, or
// its clock was set forward. A clock that was set back makes no lease end sooner, and is
// ignored.
func ranAhead(wall, monotonic time.Duration) bool {
	return wall-monotonic > clockLead
}

// elapsed returns how far the wall clock and the monotonic clock have moved since last.
func elapsed(last, now time.Time) (wall, monotonic time.Duration) {
	return now.Round(0).Sub(last.Round(0)), now.Sub(last)
}
