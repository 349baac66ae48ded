// Some tests of the long run need leases and deadlines of about a second to last.

package redistest

import (
	"testing"
	"time"
)

// Undisturbed calls f, which fails rightly if this process goes without the processor for the time
// still. If f fails after that much, Undisturbed says so: such a failure means nothing.
func Undisturbed(t testing.TB, still time.Duration, f func(t testing.TB)) {
	t.Helper()
	p, began := FeelPulse(t), time.Now()
	defer func() {
		if stood := p.Slack(began, time.Now()); t.Failed() && stood >= still {
			t.Logf("the machine stood still for %v: run it again", stood)
		}
	}()
	f(t)
}
