// The options of a Limiter.

package limiter

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// Option configures a Limiter.
type Option func(*settings)

// settings are what the options of a Limiter set.
type settings struct {
	rate
	count       int
	period      time.Duration
	burst       int
	concurrent  int
	share       int
	unavailable Unavailable

	burstSet, concurrentSet, shareSet bool
}

// Rate sets how much the limit lets through: n units in each d, one by one, in even steps of d/n. n is at least
// 1 and at most a million a second; d is at most 366 days, and counts in whole microseconds. Every Limiter needs
// a Rate.
func Rate(n int, d time.Duration) Option {
	return func(s *settings) { s.count, s.period = n, d }
}

// Burst sets how many units may be taken at once when none was taken for a while: b, at least 1. So in any time
// t the limit lets through at most b + n*t/d units. With 1, units are always d/n apart. The default is the n of
// Rate. The time d/n*b must be at most 366 days.
func Burst(b int) Option {
	return func(s *settings) { s.burst, s.burstSet = b, true }
}

// Concurrent bounds how many leases of Acquire there are at the same time: at most n, in all processes and for all
// keys together. n is from 1 to a million. The leases are permits of the PermitSemaphore "<name>:concurrent",
// which Acquire sets to n. If processes give different n, the n of the process that began last counts.
func Concurrent(n int) Option {
	return func(s *settings) { s.concurrent, s.concurrentSet = n, true }
}

// Share makes Allow take more units from Redis than are wanted just then, if there are more, and serve the next calls
// of this process from them: at most one command for each k units. k is from 1 to the burst. Units that are left a
// second later are given back. So a process may hold k units that others could have used, and in any time each process
// may let through k more units than without Share. The default is 1.
func Share(k int) Option {
	return func(s *settings) { s.share, s.shareSet = k, true }
}

// Unavailable says what a Limiter does if Redis cannot be reached.
type Unavailable int

const (
	// Refuse returns an error that matches ErrUnavailable. It is the default.
	Refuse Unavailable = iota
	// Allow lets everything through, without an error.
	Allow
)

// OnUnavailable sets what Allow, Wait, Reserve and Acquire do about the rate if Redis does not answer in time. The
// default is Refuse. Concurrent still bounds Acquire: without Redis there is no lease.
func OnUnavailable(u Unavailable) Option {
	return func(s *settings) { s.unavailable = u }
}

// beyondRate reports whether something else than the rate was set.
func (s *settings) beyondRate() bool { return s.concurrentSet || s.shareSet || s.unavailable != Refuse }

// newSettings returns the settings of those options, and what is wrong with them.
func newSettings(options []Option) (settings, error) {
	var s settings
	for _, o := range options {
		if o != nil {
			o(&s)
		}
	}
	if !s.burstSet {
		s.burst = s.count
	}
	var err error
	if s.rate, err = rateOf(s.count, s.period, s.burst); err != nil {
		return s, err
	}
	return s, s.check()
}

// check returns what is wrong with the settings, beside the rate.
func (s *settings) check() error {
	switch {
	case s.concurrentSet && (s.concurrent < 1 || s.concurrent > 1_000_000):
		return fmt.Errorf("%d at the same time: %w", s.concurrent, errs.BadArgument)
	case s.shareSet && (s.share < 1 || s.share > s.burst):
		return fmt.Errorf("a share of %d, with a burst of %d: %w", s.share, s.burst, errs.BadArgument)
	case s.unavailable != Refuse && s.unavailable != Allow:
		return fmt.Errorf("an Unavailable of %d: %w", s.unavailable, errs.BadArgument)
	}
	return nil
}
