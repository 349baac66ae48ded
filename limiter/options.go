// The options of a Limiter.

package limiter

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// Option configures a Limiter. Programs give options to Client.Limiter. Limiter.Set takes only Rate and
// Burst.
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

// Rate sets how many units the limit allows: n units in each time d. The limit allows them one by one,
// in even steps of d/n. n must be at least 1, and at most a million for each second of d. d must be at
// most 366 days, and is counted in whole microseconds. Every Limiter needs a Rate.
func Rate(n int, d time.Duration) Option {
	return func(s *settings) { s.count, s.period = n, d }
}

// Burst sets how many units callers may take at once when the limit is full: b units. With Rate(n, d),
// the limit allows at most b + n*t/d units in any time t. If b is 1, any two units are at least d/n
// apart. By default b is the n of Rate. b must be at least 1, and b*d/n must be at most 366 days.
func Burst(b int) Option {
	return func(s *settings) { s.burst, s.burstSet = b, true }
}

// Concurrent bounds how many leases of Acquire are held at the same time: at most n leases, in all
// processes and for all keys of the Limiter together. n must be from 1 to a million. Each lease is a
// permit of the PermitSemaphore "<name>:concurrent". Acquire sets the number of permits of that
// PermitSemaphore to n. If processes give different values of n, the value of the process whose first
// Acquire came last counts.
func Concurrent(n int) Option {
	return func(s *settings) { s.concurrent, s.concurrentSet = n, true }
}

// Share makes Allow take more units from Redis in one request than its callers want at that moment, if
// the limit has more. Allow keeps the additional units in this process, and serves the next calls of
// this process from them. In this way Allow asks Redis at most once for each k units. If the process
// does not use the additional units within a second, Allow gives them back.
//
// With Share, a process may keep k units from other processes, and in any time each process may allow k
// more units than without Share. k must be from 1 to the burst. The default is 1.
func Share(k int) Option {
	return func(s *settings) { s.share, s.shareSet = k, true }
}

// Unavailable says what a Limiter does if Redis does not answer in time: see OnUnavailable.
type Unavailable int

const (
	// Refuse makes calls fail with an error that matches ErrUnavailable, if Redis does not answer in
	// time. It is the default.
	Refuse Unavailable = iota
	// Allow lets every call pass the rate, and returns no error, if Redis does not answer in time.
	Allow
)

// OnUnavailable sets whether the rate allows calls of Allow, Wait, Reserve and Acquire if Redis does not
// answer in time: see Refuse and Allow. The default is Refuse. OnUnavailable does not change the bound
// of Concurrent: if Redis does not answer, Acquire gets no lease and fails.
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
