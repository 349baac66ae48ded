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
// except the Locker of a PermitSemaphore, and they may belong to different Clients. A MultiLock has no
// state, so any number of goroutines may use one MultiLock.
//
// The MultiLock takes its locks one after another, in the order of their keys in Redis. If locks on
// different servers have the same key, the MultiLock takes them in the order of the server addresses that
// the program gave to the Clients. So two callers that want the same locks never wait for each other in a
// circle, even if they name the locks in different orders. There are two conditions. First, all processes
// that lock one name on several servers give the same addresses to their Clients. Second, no process locks
// one of the locks alone and, while it holds that lock, asks for the other locks.
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

// New returns a MultiLock of the given locks. New does no I/O. If the arguments are wrong, every call of
// Lock or TryLock returns the error. The arguments are wrong if there is no lock, if a lock is given
// twice, or if a lock does not implement lease.Placed. For example, the Locker of a PermitSemaphore does
// not implement lease.Placed.
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

// Lock waits until all locks are granted, and returns a Lease on all of them. The caller must release the
// Lease. If ctx carries leases on these locks, or on some of them, Lock re-enters those locks: see
// Lease.Context.
//
// Lock waits for one lock after another, as long as ctx allows. While Lock waits, the locks that it has
// already taken are renewed or expire, as their options say. If one of the taken locks is lost, Lock
// begins again with the first lock, after a pause of at most 250 ms. If Lock fails, it releases the locks
// that it has taken. Lock does so before it returns or, if ctx has ended, in the background. The error is
// the error of the lock that failed.
func (m *MultiLock) Lock(ctx context.Context) (*Lease, error) {
	return m.acquire(ctx, "lock", lease.Locker.Lock, true)
}

// TryLock is Lock without the wait. TryLock sends one request for each lock, and stops at the first lock
// that is refused. If somebody else holds one of the locks, the error matches ErrBusy. If a lock that was
// granted is lost before all locks are granted, the error matches ErrLost.
func (m *MultiLock) TryLock(ctx context.Context) (*Lease, error) {
	return m.acquire(ctx, "try lock", lease.Locker.TryLock, false)
}

// LeaseFrom returns a Lease that ctx carries. If ctx carries a Lease on all of these locks, LeaseFrom
// returns that Lease and true. If ctx carries several such Leases, LeaseFrom returns the innermost. The
// returned Lease may have ended. If ctx carries no such Lease, ok is false. A Lease on locks of other
// Clients does not count. If ctx carries a Lease of a MultiLock, ctx also carries a lease on each single
// lock. LeaseFrom does no I/O.
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
