// The settings: how something is to be held.

package hold

import (
	"cmp"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/renewal"
)

// The defaults and bounds of the settings. Package lease says what each means.
const (
	DefaultLease = 30 * time.Second
	MinLease     = renewal.MinLease

	DefaultLocalHandoffs = 1000
	DefaultCohortTime    = 10 * time.Millisecond
	// A grant reserves at most as many tokens as MaxLocalHandoffs, one for each microsecond. Redis
	// cannot lose its data and come back in less time than that.
	MaxLocalHandoffs = 1000

	// DefaultTokenLife is how long the token of a name is kept after its last grant. Without an end
	// the token keys of names that were used once would stay for ever.
	DefaultTokenLife = 7 * 24 * time.Hour
	// MaxPriority bounds by how much a waiter of a FairMutex stands before those who came first.
	MaxPriority = 100

	// MinTokenLife is more than three times the thousand seconds in which a grant need not put the
	// expiry of the token's key off.
	MinTokenLife = time.Hour
)

// TokenKept returns how long the token of a name is kept after its last grant; 0: for ever.
func (s *Settings) TokenKept() time.Duration {
	switch {
	case s.JavaTokens:
		return 0
	case s.TokenLife == 0:
		return DefaultTokenLife
	default:
		return s.TokenLife
	}
}

// RemadeLife returns how long, in ms, Redis keeps a token's key that was lost and is made anew.
// kept is how long it keeps the key otherwise; for 0, for ever, RemadeLife returns the default.
func RemadeLife(kept int64) int64 { return cmp.Or(kept, DefaultTokenLife.Milliseconds()) }

// NoExpiry is the remaining time of a hold that has no end.
const NoExpiry time.Duration = -1

// Remaining returns a time to live as queries do: NoExpiry if it has no end, for which it is negative
// in Redis.
func Remaining(ttl time.Duration) time.Duration {
	if ttl < 0 {
		return NoExpiry
	}
	return ttl
}

// Settings are what the options of package lease set.
type Settings struct {
	Length        time.Duration // of the lease
	MaxHold       time.Duration // 0: no bound
	Grace         time.Duration // how much sooner than in Redis it ends here
	Replicas      int           // how many must have a grant
	LocalHandoffs int           // how many times a hold is passed on within the process
	CohortTime    time.Duration // how long after its grant
	Fixed         bool          // the lease is not renewed
	Notified      bool          // a loss by force is noticed at once
	Supersede     bool          // it gives way to a newer Lock
	JavaTokens    bool          // the token's key has no expiry
	Priority      int           // of a waiter of a FairMutex
	TokenLife     time.Duration // how long the token's key is kept otherwise; 0: DefaultTokenLife
}

// NewSettings applies the options in their order to the defaults.
func NewSettings[O ~func(*Settings)](options ...[]O) Settings {
	s := Defaults()
	for _, some := range options {
		for _, o := range some {
			if o != nil {
				o(&s)
			}
		}
	}
	return s
}

// Defaults returns the settings of a lease without options.
func Defaults() Settings {
	return Settings{Length: DefaultLease, LocalHandoffs: DefaultLocalHandoffs, CohortTime: DefaultCohortTime}
}

// Check returns what is wrong with the settings, or nil.
func (s Settings) Check() error {
	if s.Length < MinLease {
		return fmt.Errorf("a lease of %v is shorter than %v: %w", s.Length, MinLease, errs.BadArgument)
	}
	if s.Grace < 0 || s.Length-s.Grace < MinLease {
		return fmt.Errorf("a grace of %v leaves less than %v of a lease of %v: %w", s.Grace, MinLease, s.Length, errs.BadArgument)
	}
	if s.MaxHold < 0 {
		return fmt.Errorf("a longest hold of %v: %w", s.MaxHold, errs.BadArgument)
	}
	if s.TokenLife != 0 && s.TokenLife < MinTokenLife {
		return fmt.Errorf("tokens that are kept for %v, want at least %v: %w", s.TokenLife, MinTokenLife, errs.BadArgument)
	}
	if s.Priority < 0 || s.Priority > MaxPriority {
		return fmt.Errorf("a priority of %d, want 0 to %d: %w", s.Priority, MaxPriority, errs.BadArgument)
	}
	if s.Replicas < 0 {
		return fmt.Errorf("%d replicas: %w", s.Replicas, errs.BadArgument)
	}
	if s.LocalHandoffs < 0 || s.LocalHandoffs > MaxLocalHandoffs || s.CohortTime < 0 {
		return fmt.Errorf("a cohort of %d in %v, want 0 to %d: %w", s.LocalHandoffs, s.CohortTime, MaxLocalHandoffs, errs.BadArgument)
	}
	return nil
}

// margin is how much earlier a lease ends here than in Redis: the most that two clocks may drift
// apart while it lasts, and the time that it takes to notify the holder.
func margin(d time.Duration) time.Duration {
	return d/100 + 5*time.Millisecond
}
