// The options of slots.

package slots

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
)

const (
	// MaxNumbers is how many numbers one Slots may have at most.
	MaxNumbers = 1 << 16
	// MaxQuarantine is the longest time that the option Quarantine accepts: four years of 365 days.
	MaxQuarantine = 4 * 365 * 24 * time.Hour
)

// Option configures a Slots. Options that are given to Client.Slots apply only to the Slots that this
// call returns.
type Option func(*settings)

// settings are what the options of a Slots set.
type settings struct {
	prefer     int // -1: none
	quarantine time.Duration
	lease      []lease.Option
}

// Prefer makes Acquire take the number n if n is free. For example, n is the number that the process had
// before a restart. If n is not free, Acquire does not wait for n, and takes the lowest free number.
// Without Prefer, Acquire always takes the lowest free number. n must be from 0 to size-1.
//
// If a process dies, its number is not free until its lease is over.
func Prefer(n int) Option { return func(s *settings) { s.prefer = n } }

// Quarantine keeps a number unused for d after the holder of the number has died or has lost it. The
// time d begins when the lease is over in Redis. If the holder's Client has reported the loss to Redis
// before that, d begins at the report. If a holder releases its number, the number is free at once.
//
// Use Quarantine for numbers that nobody may use again directly after a loss, such as the worker id in
// ids that are made from a clock. For these ids, d must be longer than the greatest difference between
// the clocks of the machines.
//
// If processes give different values of d, the value of the process that held the number counts. The
// default is 0, which means no quarantine. d must be at most MaxQuarantine. Redis counts d in ms, by the
// server's clock.
func Quarantine(d time.Duration) Option { return func(s *settings) { s.quarantine = d } }

// Lease sets how each number is leased, by options of package lease such as lease.Fixed. These options
// override the Client's defaults.
func Lease(options ...lease.Option) Option {
	return func(s *settings) { s.lease = append(s.lease, options...) }
}

func newSettings(options []Option) settings {
	s := settings{prefer: -1}
	for _, o := range options {
		if o != nil {
			o(&s)
		}
	}
	return s
}

// check returns what is wrong with the arguments, or nil.
func (s *settings) check(size int) error {
	switch {
	case size < 1 || size > MaxNumbers:
		return fmt.Errorf("%d numbers, want 1 to %d: %w", size, MaxNumbers, errs.BadArgument)
	case s.prefer < -1 || s.prefer >= size:
		return fmt.Errorf("the number %d is preferred, of %d: %w", s.prefer, size, errs.BadArgument)
	case s.quarantine < 0 || s.quarantine > MaxQuarantine:
		return fmt.Errorf("a quarantine of %v, want 0 to %v: %w", s.quarantine, MaxQuarantine, errs.BadArgument)
	}
	return nil
}
