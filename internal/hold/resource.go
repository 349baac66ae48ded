// What a synchronizer brings.

package hold

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/line"
)

// Resource is what a synchronizer brings to a lease: where its state is, and the calls that change
// it. Each of these calls is safe to repeat. Done, Refused and Awaited are statuses: see conn.Done.
type Resource interface {
	Kind() string // "mutex", for errors, spans and metrics
	Name() string // as the user gave it
	Key() string  // the key in Redis that stands for it
	// Describe says in w, which is zero, what a waiter for it wants. The caller sets Kind, Place and Asker.
	Describe(w *line.Want)

	// Acquire asks for it. The reply is Done with the time to live in ms and the token, or
	// Refused with the time to live in ms of what is in the way.
	Acquire(owner Owner, length time.Duration) *conn.Call
	// Recount sets how many leases the owner has on it, and makes its time to live no less than
	// length. The reply is Done with the time to live in ms, or Refused if the owner does not
	// hold it.
	Recount(owner Owner, leases int, length time.Duration) *conn.Call
	// Renew makes its time to live no less than length. The replies are those of Recount.
	Renew(owner Owner, length time.Duration) *conn.Call
	// Release gives it up, whatever the count, and notifies the waiters by the publish command. The
	// reply is Done, or Refused if the owner does not hold it.
	Release(owner Owner, publish string) *conn.Call
}

// Marking is a Resource whose refused requests may leave something in Redis, such as a waiter's
// mark. A waiter that leaves removes that by a release.
type Marking interface {
	Resource
	// Marks reports whether this one does.
	Marks() bool
}

// Grouped is a Resource that one run of a script can renew together with others of its kind.
type Grouped interface {
	Resource
	// RenewMany returns the script that does what Renew does, for many at once: see engine.Part.
	RenewMany() *conn.Script
}

// Permits is a Resource of which an owner has several.
type Permits interface {
	Resource
	// Permits returns how many.
	Permits() int64
}

// Resource returns what the lease is on. It is nil if there is no lease.
func (l *Lease) Resource() Resource {
	if l.absent() {
		return nil
	}
	return l.hold.resource
}

// Home returns the engine of the Client whose lease it is, and the key of what it is on.
func (l *Lease) Home() (*engine.Engine, string) { return l.hold.engine, l.hold.resource.Key() }

// OpError adds to err the operation, and the kind and the name of the Resource.
func OpError(op string, r Resource, err error) error {
	return errs.Call(op, r.Kind(), r.Name(), err)
}
