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
	// MaxShards is the greatest number of shards that one name may have.
	MaxShards = 4096
	// MaxWeight is the greatest weight of a member.
	MaxWeight = 1000
	// MaxIdentity is how many bytes an identity may have.
	MaxIdentity = 256
	// MaxValue is how many bytes a value may have.
	MaxValue = 4096
)

// Option configures a Shards, which is one member. An Option given to Client.Shards applies only to the
// Shards that it returns.
type Option func(*config)

type config struct {
	identity string
	value    string
	weight   int
	moves    int // 0: any number
	hold     hold.Settings
}

// Identity sets the name of this member, which Owner and Watch return to other processes. The name has at most 256
// bytes, and several members may have the same name. The default is "<hostname>:<process id>". Everybody who may read
// from Redis can see the name.
func Identity(name string) Option { return func(c *config) { c.identity = name } }

// Value sets a text of this member that other processes can read, for example its address: at most 4096 bytes. The
// default is "".
func Value(v string) Option { return func(c *config) { c.value = v } }

// Weight sets how many shards the member takes: members share the shards in proportion to their weights, to within one
// shard. w is from 1 to MaxWeight; the default is 1.
func Weight(w int) Option { return func(c *config) { c.weight = w } }

// Moves bounds how many shards move between members at the same time, shards that are free included: to n, or to a few
// more than n if works stop slowly while other members join. A member may take any number of free shards, such as the
// shards of a member that has died. The default is 0, no bound. All members should give the same n.
func Moves(n int) Option { return func(c *config) { c.moves = n } }

// Lease sets how long a member keeps its shards after the last renewal of its lease: d, at least lease.MinLease. If the
// member's process dies, other members take its shards within d plus a second. The lease is renewed after each third of
// d. The default is the Client's, 30 s without WithDefaults.
func Lease(d time.Duration) Option { return func(c *config) { c.hold.Length = d } }

// Grace is for a member whose lease is not renewed. It makes the contexts of the member's works end d before other
// members can take its shards, so that the works have time to stop: see lease.Grace. When a shard moves between living
// members, Grace plays no part: the new member waits until the work has returned. The default is the Client's, 0
// without WithDefaults.
func Grace(d time.Duration) Option { return func(c *config) { c.hold.Grace = d } }

// Replicas lets a process become a member only if n replicas of the master acknowledge its lease: see lease.Replicas.
// Changes of the division of the shards do not wait for replicas. The default is the Client's, 0 without WithDefaults.
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
