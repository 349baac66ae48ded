// Whether the machine slept, or its clock was set, between two looks at the clock.

package renewal

import "time"

const (
	// clockWatch is the longest sleep while there is anything to guard. Timers stand
	// still while the machine is suspended, so this is also how soon after it resumes
	// leases are looked at that may be long over. A lease of 30 s falls due on a multiple
	// of it, so that one wake-up, which costs more than ten renewals, serves for both.
	clockWatch = 50 * time.Millisecond

	// clockLead is by how much the wall clock may run ahead between two wake-ups. A
	// clock that is being slewed gains a fraction of a millisecond in that time.
	clockLead = 50 * time.Millisecond
)

// ranAhead reports whether more wall time than monotonic time has passed than a running
// machine explains: it was suspended, which the monotonic clock does not count, or its
// clock was set forward. A clock set back makes no lease end sooner and is ignored.
func ranAhead(wall, monotonic time.Duration) bool {
	return wall-monotonic > clockLead
}

// elapsed returns how far the wall clock and the monotonic clock moved since last.
func elapsed(last, now time.Time) (wall, monotonic time.Duration) {
	return now.Round(0).Sub(last.Round(0)), now.Sub(last)
}
