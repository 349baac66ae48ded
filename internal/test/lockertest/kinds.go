// The kinds of locks that the suite runs on.

package lockertest

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fairlock"
	"github.com/holdfast-go/holdfast/slots"
)

// Staying has the prefixes of the keys that may stay in Redis after any kind.
var Staying = []string{"redisson_lock_token:", "holdfast_stripes:", "holdfast_calls:", "holdfast_permits:", "orders:permit:",
	"holdfast_slots_token:", "holdfast_lock_asked:", "holdfast_lock_newest:",
	"holdfast_once:", "holdfast_once_token:", "holdfast_tick:",
	"app:redisson_lock_token:", "app:holdfast_lock_asked:", "app:holdfast_lock_newest:"}

// Kinds are the kinds of locks, except those that are made of others.
var Kinds = []Kind{
	{
		Name: "mutex", Telemetry: "mutex", Fenced: true, Reentrant: true, Stays: true,
		Locker: func(c *holdfast.Client, name string, options ...holdfast.LeaseOption) holdfast.Locker {
			return c.Mutex(name, options...)
		},
	},
	{
		Name: "fair", Telemetry: "fairmutex", Fenced: true, Reentrant: true, Stays: true,
		Locker: func(c *holdfast.Client, name string, options ...holdfast.LeaseOption) holdfast.Locker {
			return c.FairMutex(name, options...)
		},
	},
	{
		Name: "priority", Telemetry: "fairmutex", Fenced: true, Reentrant: true, Stays: true,
		Locker: func(c *holdfast.Client, name string, options ...holdfast.LeaseOption) holdfast.Locker {
			return c.FairMutex(name, append(slices.Clip(options), fairlock.Priority(7))...)
		},
	},
	{
		Name: "prefixed", Telemetry: "mutex", Fenced: true, Reentrant: true, Stays: true,
		Options: []holdfast.Option{holdfast.WithKeyPrefix("app:")},
		Locker: func(c *holdfast.Client, name string, options ...holdfast.LeaseOption) holdfast.Locker {
			return c.Mutex(name, append(options, holdfast.Grace(10*time.Millisecond))...)
		},
	},
	{
		Name: "write", Telemetry: "rwlock.write", Fenced: true, Reentrant: true,
		Locker: WriteSide,
	},
	{
		Name: "read", Telemetry: "rwlock.read", Reentrant: true, Shared: true,
		Locker: func(c *holdfast.Client, name string, options ...holdfast.LeaseOption) holdfast.Locker {
			return c.RWMutex(name, options...).RLocker()
		},
		Rival: WriteSide,
	},
	{
		Name: "permit", Telemetry: "permits",
		Locker: func(c *holdfast.Client, name string, options ...holdfast.LeaseOption) holdfast.Locker {
			return c.PermitSemaphore(name, options...).Locker(1)
		},
		Prepare: func(ctx context.Context, c *holdfast.Client, name string) error {
			_, err := c.PermitSemaphore(name).TrySetPermits(ctx, 1)
			return err
		},
	},
	{
		Name: "slot", Telemetry: "slots", Fenced: true,
		Locker: func(c *holdfast.Client, name string, options ...holdfast.LeaseOption) holdfast.Locker {
			return c.Slots(name, 1, slots.Lease(options...)).Locker()
		},
	},
	{
		Name: "stripe", Telemetry: "mutex", Fenced: true, Reentrant: true, Stays: true,
		Locker: func(c *holdfast.Client, name string, options ...holdfast.LeaseOption) holdfast.Locker {
			return c.Striped(name, 4, options...).For("customer 17")
		},
	},
}

// WriteSide is the Locker of the write side of an RWMutex.
func WriteSide(c *holdfast.Client, name string, options ...holdfast.LeaseOption) holdfast.Locker {
	return c.RWMutex(name, options...)
}
