// The options of shards: what a member says of itself, how much it takes, and how it holds that.

package shards

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
)

// The bounds of the arguments.
const (
	// MaxShards is how many shards one name may have at most.
	MaxShards = 4096
	// MaxWeight is the greatest weight that the option Weight accepts.
	MaxWeight = 1000
	// MaxIdentity is how many bytes the name of a member may have at most: see the option Identity.
	MaxIdentity = 256
	// MaxValue is how many bytes the text of a member may have at most: see the option Value.
	MaxValue = 4096
)

// Option configures a Shards, which is one member. Options that are given to Client.Shards apply only to
// the Shards that this call returns.
type Option func(*config)

type config struct {
	identity string
	value    string
	weight   int
	moves    int // 0: any number
	hold     hold.Settings
}

// Identity sets the name of this member. Owner and Watch return the name to all processes. The name has
// at most 256 bytes, and several members may have the same name. Everybody who may read from Redis can
// see the name. The default is "<hostname>:<process id>".
func Identity(name string) Option { return func(c *config) { c.identity = name } }

// Value sets a text of this member, for example its address. Owner and Watch return the text to all
// processes. v has at most 4096 bytes. The default is "".
func Value(v string) Option { return func(c *config) { c.value = v } }

// Weight sets the weight of this member. The members of one name share the shards in proportion to their
// weights, to within one shard. w must be from 1 to MaxWeight. The default is 1.
func Weight(w int) Option { return func(c *config) { c.weight = w } }

// Moves bounds how many shards move between members at the same time: at most n. Shards that are free
// count as moving. If works stop slowly while other members join, a few more than n shards may move.
// Moves does not bound how many free shards a member takes, such as the shards of a member that has
// died. The default is 0, which means no bound. All members should give the same n.
func Moves(n int) Option { return func(c *config) { c.moves = n } }

// Lease makes the lease of a member d long: after the last renewal of its lease, the member keeps its
// shards for the time d. If the process of the member dies, other members take its shards within d plus
// one second. Holdfast renews the lease every third of d. d must be at least lease.MinLease. The default
// is the length that the Client's WithDefaults sets, or 30 s.
func Lease(d time.Duration) Option { return func(c *config) { c.hold.Length = d } }

// Grace is for a member whose lease is not renewed. It makes the contexts of the member's works end d
// before other members can take the member's shards, so that the works have time to stop: see
// lease.Grace. Grace has no effect if a shard moves from one living member to another, because the new
// member waits until the work of the former member has returned. The default is the grace that the
// Client's WithDefaults sets, or 0.
func Grace(d time.Duration) Option { return func(c *config) { c.hold.Grace = d } }

// Replicas lets this process become a member only if n replicas of the master acknowledge the lease of
// the member: see lease.Replicas. When shards move from member to member, Holdfast does not wait for
// replicas. The default is the number of replicas that the Client's WithDefaults sets, or 0.
func Replicas(n int) Option { return func(c *config) { c.hold.Replicas = n } }

// newConfig applies the options to the defaults. A membership is always renewed: of the Client's defaults only the
// length, the grace and the replicas count.
func newConfig(defaults hold.Settings, options []Option) config {
	c := config{weight: 1, hold: hold.Defaults()}
	c.hold.Length, c.hold.Grace, c.hold.Replicas = defaults.Length, defaults.Grace, defaults.Replicas
	c.hold.TokenLife = defaults.TokenLife
	for _, o := range options {
		if o != nil {
			o(&c)
		}
	}
	if c.identity == "" {
		host, _ := os.Hostname()
		c.identity = host + ":" + strconv.Itoa(os.Getpid())
		c.identity = c.identity[max(0, len(c.identity)-MaxIdentity):]
	}
	return c
}

// check returns what is wrong with the arguments, or nil.
func (c *config) check(size int) error {
	switch {
	case size < 1 || size > MaxShards:
		return fmt.Errorf("%d shards, want 1 to %d: %w", size, MaxShards, errs.BadArgument)
	case c.weight < 1 || c.weight > MaxWeight:
		return fmt.Errorf("a weight of %d, want 1 to %d: %w", c.weight, MaxWeight, errs.BadArgument)
	case c.moves < 0:
		return fmt.Errorf("%d moves at a time: %w", c.moves, errs.BadArgument)
	case len(c.identity) > MaxIdentity:
		return fmt.Errorf("an identity of %d bytes, at most %d: %w", len(c.identity), MaxIdentity, errs.BadArgument)
	case len(c.value) > MaxValue:
		return fmt.Errorf("a value of %d bytes, at most %d: %w", len(c.value), MaxValue, errs.BadArgument)
	default:
		return c.hold.Check()
	}
}

// said is what the member says of itself in Redis: see table.lua.
func (c *config) said() string {
	return fmt.Sprintf("%d %d %s%s", c.weight, len(c.identity), c.identity, c.value)
}
