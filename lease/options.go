// How something is to be held.

package lease

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/renewal"
)

// DefaultLease is the lease of a lock for which nothing else is said, renewed
// every 10 s. It is Redisson's lockWatchdogTimeout.
const DefaultLease = 30 * time.Second

// MinLease is the shortest lease there may be.
const MinLease = renewal.MinLease

// Option says how something is to be held. Given to New by WithDefaults it
// holds for a whole Client, given to a factory method for one synchronizer.
type Option func(*Settings)

// Renewed has the lease renewed every third of d until it is released or lost.
// If the process dies the lock is free after d at the latest. The default is
// Renewed(DefaultLease).
func Renewed(d time.Duration) Option {
	return func(s *Settings) { s.length, s.fixed = d, false }
}

// Fixed has the lease end d after it was granted, and never renewed.
func Fixed(d time.Duration) Option {
	return func(s *Settings) { s.length, s.fixed = d, true }
}

// MaxHold ends a renewed lease with ErrMaxHold when it has been held for d, as a
// net under a forgotten release. It counts from the request that was granted: where the
// answer takes longer than d, Lock gives the grant back, and its error matches
// ErrMaxHold. It is off by default, and with 0.
func MaxHold(d time.Duration) Option {
	return func(s *Settings) { s.maxHold = d }
}

// Replicas has a grant count only once n replicas of the master have
// acknowledged it, within half a second; otherwise it is taken back, and the
// error matches ErrNotReplicated. A renewal that fewer acknowledge does not
// prolong the lease here, and is tried again until the lease is over. So a grant
// survives the failure of the master, if a replica that has it is promoted. The
// default is 0: it is not waited for. See docs/guarantees.md.
func Replicas(n int) Option {
	return func(s *Settings) { s.replicas = n }
}

// JavaTokens shares the fencing tokens of a name with Redisson's RFencedLock:
// the token's key gets no expiry. Without it the key of a token that nobody has
// asked for in a week goes away; the next token is greater all the same. A name whose
// braces make no hash tag ("a}b", "a{", "{}x") is refused with ErrBadArgument: Redisson
// would count its tokens in another place.
func JavaTokens() Option {
	return func(s *Settings) { s.javaTokens = true }
}

// Cohort bounds how a Mutex is passed on within a process: a Release gives it to
// the next goroutine that waits for it here, without a word to Redis, at most n
// times and for at most d after Redis has granted it; then it is the turn of other
// processes. Each gets a Lease and a token of its own. The default is
// Cohort(DefaultHandOvers, DefaultCohortTime): 1000 times, 10 ms.
//
// With n or d 0 each Release goes to Redis. That is always so for a fixed lease, with
// Replicas, when less than half of the lease is left, if the one who waits has
// other options, and while others than Clients of Holdfast wait, such as Java. n is
// 1000 at the most.
func Cohort(n int, d time.Duration) Option {
	return func(s *Settings) { s.handOvers, s.cohortTime = n, d }
}

// Settings is what options set.
type Settings struct {
	length     time.Duration
	maxHold    time.Duration
	replicas   int
	handOvers  int
	cohortTime time.Duration
	fixed      bool
	javaTokens bool
}

// NewSettings applies the options in their order to the defaults.
func NewSettings(options ...[]Option) Settings {
	s := Settings{length: DefaultLease, handOvers: DefaultHandOvers, cohortTime: DefaultCohortTime}
	for _, some := range options {
		for _, o := range some {
			if o != nil {
				o(&s)
			}
		}
	}
	return s
}

// Length returns how long the lease is.
func (s Settings) Length() time.Duration { return s.length }

// Replicas returns how many replicas must have a grant.
func (s Settings) Replicas() int { return s.replicas }

// JavaTokens reports whether the token's key is to have no expiry.
func (s Settings) JavaTokens() bool { return s.javaTokens }

// check says what is wrong with the settings, if anything is.
func (s Settings) check() error {
	if s.length < MinLease {
		return fmt.Errorf("a lease of %v is shorter than %v: %w", s.length, time.Duration(MinLease), errs.BadArgument)
	}
	if s.maxHold < 0 {
		return fmt.Errorf("a longest hold of %v: %w", s.maxHold, errs.BadArgument)
	}
	if s.replicas < 0 {
		return fmt.Errorf("%d replicas: %w", s.replicas, errs.BadArgument)
	}
	if s.handOvers < 0 || s.handOvers > MaxHandOvers || s.cohortTime < 0 {
		return fmt.Errorf("a cohort of %d in %v, want 0 to %d: %w", s.handOvers, s.cohortTime, MaxHandOvers, errs.BadArgument)
	}
	return nil
}

// margin is by how much a lease is taken to end earlier here than in Redis: the
// most that two clocks may drift apart over it, and the time that it takes to tell.
func margin(d time.Duration) time.Duration {
	return d/100 + 5*time.Millisecond
}
