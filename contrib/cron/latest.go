// Which tick a run is for.

package holdcron

import (
	"time"

	"github.com/robfig/cron/v3"
)

// longestGap is how far Latest looks back. Cron itself looks five years ahead.
const longestGap = 10 * 365 * 24 * time.Hour

// Latest returns a function for the field At of Ticks. That function returns the latest time of the
// schedule that is not after now. If the schedule had no time within the last ten years, the function
// returns the zero time.
//
// location is the time zone of the Cron: pass the result of its method Location. Cron reads a spec
// without CRON_TZ in this time zone. So location must be the same on all replicas.
//
// Cron runs "@every 5m" at times that depend on the start of each replica. So for "@every 5m" the
// function returns the last whole multiple of 5 minutes. Between two ticks the job runs once, on the
// replica that comes first.
func Latest(schedule cron.Schedule, location *time.Location) func(now time.Time) time.Time {
	if every, ok := schedule.(cron.ConstantDelaySchedule); ok {
		return func(now time.Time) time.Time { return now.Truncate(every.Delay) }
	}
	return func(now time.Time) time.Time { return latest(schedule, now.Round(0).In(location)) }
}

func latest(schedule cron.Schedule, now time.Time) time.Time {
	// A Schedule only looks ahead. So find a time from which it sees a tick that is over, close to the last one.
	past := func(t time.Time) bool { return !t.IsZero() && !t.After(now) }
	back := time.Second
	for !past(schedule.Next(now.Add(-back))) {
		if back *= 2; back > longestGap {
			return time.Time{}
		}
	}
	low, high := now.Add(-back), now // a tick between them, and none after high
	for high.Sub(low) > time.Second {
		middle := low.Add(high.Sub(low) / 2)
		if past(schedule.Next(middle)) {
			low = middle
		} else {
			high = middle
		}
	}
	tick := schedule.Next(low)
	for next := schedule.Next(tick); past(next); next = schedule.Next(next) {
		tick = next
	}
	return tick
}
