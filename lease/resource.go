// What a synchronizer brings.

package lease

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// Locker is what can be held: each call that succeeds returns a Lease of its own.
type Locker interface {
	// Lock waits until the thing is granted or ctx ends. What is granted in the moment
	// in which ctx ends is returned, and is the caller's to release.
	Lock(ctx context.Context) (*Lease, error)
	// TryLock asks once. It returns an error that matches ErrBusy if another
	// holds the thing.
	TryLock(ctx context.Context) (*Lease, error)
}

// Resource is what a synchronizer brings to a lease: where its state lives and
// the calls that change it. Each method returns a call that is safe to repeat.
// It is for the packages of the synchronizers.
type Resource interface {
	Kind() string // "mutex", for errors, spans and metrics
	Name() string // as the user gave it
	Key() string  // the key in Redis that stands for it
	// Waiting says how to wait for it: all but Kind and Try.
	Waiting() engine.Waiting

	// Acquire asks for it: Granted with the time to live in ms and the token,
	// or Refused with the time to live of what is in the way.
	Acquire(owner Owner, length time.Duration) *conn.Call
	// Recount sets how many leases the owner has on it, and makes its time to
	// live no less than length: Granted with the time to live in ms, or Refused
	// if the owner does not hold it.
	Recount(owner Owner, leases int, length time.Duration) *conn.Call
	// Renew makes its time to live no less than length, with the same answers.
	Renew(owner Owner, length time.Duration) *conn.Call
	// Release gives it up, whatever the count, and tells with the publish
	// command: Granted, or Refused if the owner does not hold it.
	Release(owner Owner, publish string) *conn.Call
}

// Grouped is a Resource of which many are renewed by one run of a script. It is
// for the packages of the synchronizers.
type Grouped interface {
	Resource
	// RenewMany returns the script that does what Renew does, for many: see
	// engine.Part.
	RenewMany() *conn.Script
}

// ResourceOf returns what the lease is on. It is for the packages of the
// synchronizers.
func ResourceOf(l *Lease) Resource { return l.hold.resource }

// Statuses of a Resource's calls.
const (
	Refused = 0
	Granted = 1
	Awaited = 2
)
