// The options of an election: what a candidate says of itself, and how long it leads.

package leader

import (
	"fmt"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
)

// These constants are the bounds of the options Priority, Identity and Value.
const (
	// MaxPriority is the highest priority of a candidate. The lowest priority is -MaxPriority.
	MaxPriority = 100
	// MaxIdentity is how many bytes the identity of a candidate may have.
	MaxIdentity = 256
	// MaxValue is how many bytes the value of a candidate may have.
	MaxValue = 4096
)

// Option configures a candidate. An Option that is given to Client.Leader applies only to the Election
// that Client.Leader returns.
type Option func(*config)

type config struct {
	identity string
	value    string
	priority int
	preempt  bool
	maxTerm  time.Duration
	hold     hold.Settings
}

// Identity sets the name of this candidate. Other processes get the name from their calls of Leader,
// Observe and Candidates. The name has at most 256 bytes. Several candidates may have the same name. By
// default, and if name is "", the name is "<hostname>:<process id>". Everybody who may read the keys in
// Redis can see the name.
func Identity(name string) Option { return func(c *config) { c.identity = name } }

// Value sets a text that other processes can read while this candidate leads, for example the address of
// this process. The text has at most 4096 bytes. The default is "".
func Value(v string) Option { return func(c *config) { c.value = v } }

// Priority sets the priority of this candidate to p, which is from -MaxPriority to MaxPriority. The
// default is 0. Of the candidates that wait, the candidate with the highest priority leads next.
// Candidates of the same priority lead in the order in which they began to wait. A candidate that waits
// gains one step of priority for each 115 days of waiting. A leader goes on leading while a candidate of
// higher priority waits, except if that candidate has the option Preempt.
func Priority(p int) Option { return func(c *config) { c.priority = p } }

// Preempt makes this candidate, while it waits, ask a leader of lower priority to resign. The term of that
// leader ends with ErrResigned. When the work of that leader has returned, the next candidate leads.
// Without Preempt, this candidate waits until the leader's term ends for another reason.
func Preempt() Option { return func(c *config) { c.preempt = true } }

// MaxTerm makes each term of this candidate end with ErrResigned when the term has lasted for d minus a
// random time. The random time is at most a tenth of d. Because of the random time, terms that began
// together do not end together. After the end of a term, this candidate waits behind the other candidates
// of its priority. By default, and if d is 0, the length of a term has no bound. Any other d must be at
// least lease.MinLease.
func MaxTerm(d time.Duration) Option { return func(c *config) { c.maxTerm = d } }

// Lease sets the length of the leader's lease to d. While this candidate leads, Holdfast renews the lease
// every third of d. If the leader's process dies, another candidate leads when the lease is over, at most
// d after the last renewal. The default is the length that WithDefaults sets for the Client, or 30 s
// without WithDefaults. d must be at least lease.MinLease.
func Lease(d time.Duration) Option { return func(c *config) { c.hold.Length = d } }

// Grace makes a term whose lead is lost end d before another candidate can lead. So the term's work has
// time to stop: see lease.Grace. If the work returns during this time, the next candidate leads at once.
// If the leader's process dies, another candidate leads at the same time as without Grace. The default is
// the Grace that WithDefaults sets for the Client, or 0 without WithDefaults. The length of the lease
// minus d must be at least lease.MinLease.
func Grace(d time.Duration) Option { return func(c *config) { c.hold.Grace = d } }

// Replicas makes this candidate lead only if n replicas of Redis's master have acknowledged the grant of
// the lead: see lease.Replicas. The default is the number that WithDefaults or WithReplicas sets for the
// Client, or 0 without these options.
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
