// Several locks as one: which they are, in which order, and what programs call.

package multilock

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

// MultiLock stands for several locks that are held together or not at all. The locks may be of any kind
// except a PermitSemaphore's Locker, and may belong to different Clients. A MultiLock has no state: any
// number of goroutines may use one value.
//
// The locks are taken one after another, in the order of their keys in Redis. Locks with the same key on
// different servers are taken in the order of the addresses that the Clients were given. So two callers
// that want the same locks never wait for each other in a circle, even if they name the locks in
// different orders. There are two conditions: all processes that lock one name on several servers use
// the same addresses, and no process locks one of the locks alone and then asks for the rest.
type MultiLock struct {
	members []member // in the order in which they are taken
	name    string   // of all of them, for spans
	err     error    // why it cannot be used

	// identity is equal for values that are the same locks.
	identity string
}

type member struct {
	locker lease.Locker
	place  string
	given  int // its index among the arguments of New
}

// New returns a MultiLock of the given locks. It does no I/O. If the arguments are wrong, every call on
// the MultiLock returns the error. Arguments are wrong if there is no lock, if a lock is given twice, or
// if a lock does not implement lease.Placed, such as the Locker of a PermitSemaphore.
func New(lockers ...lease.Locker) *MultiLock {
	if len(lockers) == 0 {
		return &MultiLock{err: errNone}
	}
	m := new(MultiLock)
	for i, locker := range lockers {
		placed, ok := locker.(lease.Placed)
		if !ok {
			return &MultiLock{err: fmt.Errorf("a lock of type %T does not say where it stands: %w", locker, errs.BadArgument)}
		}
		m.members = append(m.members, member{locker, placed.Place(), i})
	}
	slices.SortFunc(m.members, func(a, b member) int { return strings.Compare(a.place, b.place) })
	for i := 1; i < len(m.members); i++ {
		a, b := m.members[i-1], m.members[i]
		if a.place == b.place && a.place != "" {
			key, address, _ := strings.Cut(a.place, "\x00")
			m.err = fmt.Errorf("locks %d and %d are both %s at %s, or cannot be told apart: %w",
				min(a.given, b.given), max(a.given, b.given), errs.Quote(key), address, errs.BadArgument)
		}
	}
	m.name, m.identity = nameOf(m.members), identify(m.members)
	return m
}

// nameOf returns the name of the whole: the names of its members, in the order of locking.
func nameOf(members []member) string {
	names := make([]string, len(members))
	for i, one := range members {
		names[i], _, _ = strings.Cut(one.place, "\x00")
		if named, ok := one.locker.(interface{ Name() string }); ok {
			names[i] = named.Name()
		}
	}
	return strings.Join(names, ", ")
}

// identify returns a text that is equal for values that are the same locks. It may be equal for those
// of other Clients too: see LeaseFrom.
func identify(members []member) string {
	var id strings.Builder
	for _, one := range members {
		// The two sides of one lock differ only by their type.
		fmt.Fprintf(&id, "%T %q ", one.locker, one.place)
	}
	return id.String()
}

var errNone = fmt.Errorf("no locks were given: %w", errs.BadArgument)

func (m *MultiLock) usable() error {
	if m == nil || m.err == nil && len(m.members) == 0 {
		return errNone
	}
	return m.err
}

// Lock waits until all of the locks are granted, and returns the Lease on them, which the caller must
// release. With a context made by Lease.Context, a Lock re-enters all of the locks, or one of them.
//
// Lock waits as long as ctx allows, for one lock after another. While it waits, the locks that it has
// taken are renewed, or expire, as their options say. If one of them is lost, Lock begins again with the
// first lock, after a pause of at most 250 ms. If Lock fails, it releases the locks that it has taken,
// before it returns or, if ctx has ended, in the background. The error is the error of the lock that
// failed.
func (m *MultiLock) Lock(ctx context.Context) (*Lease, error) {
	return m.acquire(ctx, "lock", lease.Locker.Lock, true)
}

// TryLock is Lock without the wait: it sends one request for each lock, up to the first lock that is
// refused. If somebody else holds one of the locks, the error matches ErrBusy. If a lock was lost before
// all locks were granted, the error matches ErrLost.
func (m *MultiLock) TryLock(ctx context.Context) (*Lease, error) {
	return m.acquire(ctx, "try lock", lease.Locker.TryLock, false)
}

// LeaseFrom returns the lease on all of the locks that ctx carries: the innermost, if ctx carries
// several. That lease may have ended. ok is false if ctx carries no such lease. LeaseFrom does no I/O. A
// lease of other Clients does not count. If ctx carries a lease on a MultiLock, it also carries a lease
// on each of the locks.
func (m *MultiLock) LeaseFrom(ctx context.Context) (l *Lease, ok bool) {
	if m.usable() != nil {
		return nil, false
	}
	for {
		l, under, found := hold.WholeIn[*Lease](ctx, m.identity)
		if !found || m.reenters(l, under) {
			return l, found
		}
		ctx = under
	}
}

// reenters reports whether a Lock with ctx, which carries the leases of l, would re-enter them. It
// would not if they are of other Clients.
func (m *MultiLock) reenters(l *Lease, ctx context.Context) bool {
	for _, one := range m.members {
		from, can := one.locker.(interface {
			LeaseFrom(ctx context.Context) (*lease.Lease, bool)
		})
		if !can {
			continue
		}
		if carried, found := from.LeaseFrom(ctx); !found || !l.has(carried.Owner()) {
			return false
		}
	}
	return true
}

// outer returns the live Lease on these locks that ctx carries, or nil.
func (m *MultiLock) outer(ctx context.Context) *Lease {
	if l, found := m.LeaseFrom(ctx); found && l.Err() == nil {
		return l
	}
	return nil
}
