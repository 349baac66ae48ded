// The options of an election: what a candidate says of itself, and how long it leads.

package leader

import (
	"fmt"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
)

// The bounds of the options.
const (
	// MaxPriority is the highest priority. The lowest priority is -MaxPriority.
	MaxPriority = 100
	// MaxIdentity is how many bytes an identity may have.
	MaxIdentity = 256
	// MaxValue is how many bytes a value may have.
	MaxValue = 4096
)

// Option configures a candidate. An Option given to Client.Leader applies to that one Election.
type Option func(*config)

type config struct {
	identity string
	value    string
	priority int
	preempt  bool
	maxTerm  time.Duration
	hold     hold.Settings
}

// Identity sets the name of this candidate, which Leader, Observe and Candidates return to other
// processes. The name has at most 256 bytes, and several candidates may have the same name. The default
// is "<hostname>:<process id>". Everybody who may read from Redis can see the name.
func Identity(name string) Option { return func(c *config) { c.identity = name } }

// Value sets a text that other processes can read while this candidate leads, for example its address:
// at most 4096 bytes. The default is "".
func Value(v string) Option { return func(c *config) { c.value = v } }

// Priority puts the candidate before waiting candidates with a lower priority. p is from -MaxPriority to
// MaxPriority; the default is 0. Candidates of the same priority lead in the order in which they came.
// For each 115 days of waiting, a candidate's priority counts as higher by one. A leader of lower
// priority goes on leading: see Preempt.
func Priority(p int) Option { return func(c *config) { c.priority = p } }

// Preempt makes a waiting candidate ask a leader of lower priority to resign. That leader's term ends
// with ErrResigned, and the next candidate leads when that leader's work has returned. Without Preempt a
// candidate only waits.
func Preempt() Option { return func(c *config) { c.preempt = true } }

// MaxTerm bounds each term: when a term has lasted for d, less a random part of at most a tenth of d, it
// ends with ErrResigned. The random part keeps terms that began together from ending together. After the
// term the candidate waits behind the others of its priority. The default is 0, no bound. Any other d
// must be at least MinLease.
func MaxTerm(d time.Duration) Option { return func(c *config) { c.maxTerm = d } }

// Lease sets how long the lead lasts after its last renewal: d, at least MinLease. If the leader's
// process dies, another candidate leads after d at the latest. The lead is renewed after each third of
// d. The default is the Client's, 30 s without WithDefaults.
func Lease(d time.Duration) Option { return func(c *config) { c.hold.Length = d } }

// Grace makes a lost term end d before another candidate can lead, so that the term's work has time to
// stop: see lease.Grace. If the work returns sooner, the next candidate leads at once. If the leader's
// process dies, another candidate leads at the same time as without Grace. The default is the Client's,
// 0 without WithDefaults. The Lease less d must be at least MinLease.
func Grace(d time.Duration) Option { return func(c *config) { c.hold.Grace = d } }

// Replicas makes a candidate lead only if n replicas of the master have acknowledged the grant: see
// lease.Replicas. The default is the Client's, 0 without WithDefaults.
func Replicas(n int) Option { return func(c *config) { c.hold.Replicas = n } }

// newConfig applies the options to the defaults. A lead is always renewed, and MaxTerm bounds it: so
// of the Client's defaults only the length, the grace and the replicas count.
func newConfig(defaults hold.Settings, options []Option) config {
	c := config{hold: hold.Defaults()}
	c.hold.Length, c.hold.Grace, c.hold.Replicas = defaults.Length, defaults.Grace, defaults.Replicas
	for _, o := range options {
		if o != nil {
			o(&c)
		}
	}
	if c.identity == "" {
		host, _ := os.Hostname()
		c.identity = fmt.Sprintf("%s:%d", host, os.Getpid())
		c.identity = c.identity[max(0, len(c.identity)-MaxIdentity):]
	}
	return c
}

func (c *config) check() error {
	switch {
	case c.priority < -MaxPriority || c.priority > MaxPriority:
		return fmt.Errorf("a priority of %d, want -%d to %d: %w", c.priority, MaxPriority, MaxPriority, errs.BadArgument)
	case len(c.identity) > MaxIdentity:
		return fmt.Errorf("an identity of %d bytes, at most %d: %w", len(c.identity), MaxIdentity, errs.BadArgument)
	case len(c.value) > MaxValue:
		return fmt.Errorf("a value of %d bytes, at most %d: %w", len(c.value), MaxValue, errs.BadArgument)
	case c.maxTerm != 0 && c.maxTerm < hold.MinLease:
		return fmt.Errorf("a longest term of %v, at least %v: %w", c.maxTerm, hold.MinLease, errs.BadArgument)
	default:
		return c.hold.Check()
	}
}
