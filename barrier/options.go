// The options of a barrier.

package barrier

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
)

// MaxParties is the greatest number of parties that a barrier may have.
const MaxParties = 100_000

// Option configures a Barrier. An Option that is given to Client.Barrier applies only to the Barrier that
// Client.Barrier returns.
type Option func(*hold.Settings)

// Lease sets the length of a party's lease to d. This lease belongs to the place that the party has in
// Redis while it waits. Await renews the lease every third of d. If the party's process dies, the party's
// generation breaks between d and d + 1.25 s after the last renewal. The default is the length that
// WithDefaults sets for the Client, or 30 s without WithDefaults. d must be at least lease.MinLease.
func Lease(d time.Duration) Option { return func(s *hold.Settings) { s.Length = d } }

// newSettings applies the options to the defaults. Of the Client's defaults only the length of a
// lease counts: a place is always renewed, and ctx alone bounds the wait.
func newSettings(defaults hold.Settings, options []Option) hold.Settings {
	s := hold.Defaults()
	s.Length = defaults.Length
	for _, o := range options {
		if o != nil {
			o(&s)
		}
	}
	return s
}

func check(parties int, s hold.Settings) error {
	if parties < 1 || parties > MaxParties {
		return fmt.Errorf("%d parties, want 1 to %d: %w", parties, MaxParties, errs.BadArgument)
	}
	return s.Check()
}
