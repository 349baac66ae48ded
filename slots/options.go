// The options of slots.

package slots

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
)

const (
	// MaxNumbers is the greatest number of slots that one name may have.
	MaxNumbers = 1 << 16
	// MaxQuarantine is the longest quarantine: four years of 365 days.
	MaxQuarantine = 4 * 365 * 24 * time.Hour
)

// Option configures a Slots. An Option given to Client.Slots applies only to the Slots that it returns.
type Option func(*settings)

// settings are what the options of a Slots set.
type settings struct {
	prefer     int // -1: none
	quarantine time.Duration
	lease      []lease.Option
}

// Prefer asks for the number n, for example the number that the process had before a restart. If n is
// not free, Acquire does not wait for n, and takes the lowest free number. n is from 0 to size-1.
// Without Prefer, Acquire takes the lowest free number.
//
// The number of a process that died is not free before its lease is over.
func Prefer(n int) Option { return func(s *settings) { s.prefer = n } }

// Quarantine keeps a number unused for d after its holder has died or has lost it. The time d begins at the end of the
// lease in Redis, or when the holder's Client has reported the loss to Redis. Quarantine is for numbers that must not
// be used again directly after a loss, such as the worker id in ids made from a clock: let d be longer than the clocks
// of the machines may differ. A number that its holder has released is free at once.
//
// The quarantine of a number is the option of the process that held the number. The default is 0, no
// quarantine; d is at most MaxQuarantine. The quarantine is counted in ms, by the server's clock.
func Quarantine(d time.Duration) Option { return func(s *settings) { s.quarantine = d } }

// Lease sets the lease on a number, by the options of package lease. They override the Client's
// defaults.
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
