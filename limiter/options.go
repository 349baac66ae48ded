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

// Rate sets how much the limit allows: n units in each d, one by one, in even steps of d/n. n is at least 1, and at
// most a million for each second of d. d is at most 366 days, in whole microseconds. Every Limiter needs a Rate.
func Rate(n int, d time.Duration) Option {
	return func(s *settings) { s.count, s.period = n, d }
}

// Burst sets how many units may be taken at once when the limit is full: b, at least 1. So in any time t the limit
// allows at most b + n*t/d units, with the n and d of Rate. If b is 1, units are always at least d/n apart. The default
// is the n of Rate. The time d/n*b must be at most 366 days.
func Burst(b int) Option {
	return func(s *settings) { s.burst, s.burstSet = b, true }
}

// Concurrent bounds how many leases of Acquire there are at the same time: at most n, in all processes and for all keys
// together. n is from 1 to a million. The leases are permits of the PermitSemaphore "<name>:concurrent", which Acquire
// sets to n. If processes give different values of n, the value of the process that began last counts.
func Concurrent(n int) Option {
	return func(s *settings) { s.concurrent, s.concurrentSet = n, true }
}

// Share makes Allow take more units from Redis in one request than its callers want, if the limit has them. Allow
// serves the next calls of this process from these units. So it asks Redis at most once for each k units. Units that
// are unused a second later are given back. So a process may keep k units from other processes, and in any time each
// process may allow k more units than without Share. k is from 1 to the burst. The default is 1.
func Share(k int) Option {
	return func(s *settings) { s.share, s.shareSet = k, true }
}

// Unavailable says what a Limiter does if Redis does not answer in time.
type Unavailable int

const (
	// Refuse returns an error that matches ErrUnavailable. It is the default.
	Refuse Unavailable = iota
	// Allow allows every call, without an error.
	Allow
)

// OnUnavailable sets what Allow, Wait, Reserve and Acquire do about the rate if Redis does not answer in time. The
// default is Refuse. It does not change the bound of Concurrent: if Redis does not answer, Acquire gets no lease.
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
