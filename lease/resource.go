// What a synchronizer brings.

package lease

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/line"
)

// Locker is something that can be held: each call that succeeds returns a Lease of its own.
type Locker interface {
	// Lock waits until the thing is granted or ctx ends. If ctx ends the wait, the error matches
	// ctx's error and its cause. If the grant comes just as ctx ends, Lock returns the lease, and
	// the caller must release it.
	Lock(ctx context.Context) (*Lease, error)
	// TryLock asks once and does not wait. If another holds the thing, the error matches ErrBusy.
	TryLock(ctx context.Context) (*Lease, error)
}

// Resource is what a synchronizer brings to a lease: where its state is, and the calls that change
// it. Each of these calls is safe to repeat. Done, Refused and Awaited are statuses: see conn.Done.
// It is for the packages of the synchronizers.
type Resource interface {
	Kind() string // "mutex", for errors, spans and metrics
	Name() string // as the user gave it
	Key() string  // the key in Redis that stands for it
	// Waiting says how to wait for it. The caller sets Kind, Place and Asker.
	Waiting() line.Waiting

	// Acquire asks for it. The reply is Done with the time to live in ms and the token, or
	// Refused with the time to live in ms of what is in the way.
	Acquire(owner Owner, length time.Duration) *conn.Call
	// Recount sets how many leases the owner has on it, and makes its time to live no less than
	// length. The reply is Done with the time to live in ms, or Refused if the owner does not
	// hold it.
	Recount(owner Owner, leases int, length time.Duration) *conn.Call
	// Renew makes its time to live no less than length. The replies are those of Recount.
	Renew(owner Owner, length time.Duration) *conn.Call
	// Release gives it up, whatever the count, and tells the waiters by the publish command. The
	// reply is Done, or Refused if the owner does not hold it.
	Release(owner Owner, publish string) *conn.Call
}

// Marking is a Resource of which a refused request may leave something in Redis. A waiter that
// leaves takes that away by a release. It is for the packages of the synchronizers.
type Marking interface {
	Resource
	// Marks reports whether this one does.
	Marks() bool
}

// Grouped is a Resource that one run of a script can renew together with others of its kind. It is
// for the packages of the synchronizers.
type Grouped interface {
	Resource
	// RenewMany returns the script that does what Renew does, for many at once: see engine.Part.
	RenewMany() *conn.Script
}

// ResourceOf returns the Resource that the lease is on. It is for the packages of the
// synchronizers.
func ResourceOf(l *Lease) Resource { return l.hold.resource }
