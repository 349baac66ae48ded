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

// MultiLock is several locks that are held together or not at all. They may be of any kind except a
// PermitSemaphore's Locker, and of different Clients. A MultiLock holds no state: any number of
// goroutines may use one value.
//
// The locks are taken one after another, in an order that does not depend on how they were given:
// by their keys in Redis, and for locks of the same key on different servers by the addresses that
// the Clients were given. So two callers that want the same locks never wait for each other in a
// circle, in whatever order they name them. This needs two things: processes that lock one name on
// several servers use the same addresses, and no process locks one of the locks alone and then asks
// for the rest.
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

// New returns all of the locks as one. It does no I/O. If the arguments are wrong, every call
// returns that error: if there are no locks, if one is given twice, or if one is not a
// lease.Placed, such as the permits of a PermitSemaphore.
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
// release. A context made by Lease.Context re-enters all of them, or each one alone.
//
// Lock waits as long as ctx allows, for one lock after another. Meanwhile the locks that it has are
// renewed, or run out, as their options say. If one of them is lost while Lock waits for another,
// Lock begins again, after a pause of at most 250 ms. On failure Lock releases what it has
// taken, before it returns or, if ctx has ended, in the background. The errors are those of the
// lock that failed.
func (m *MultiLock) Lock(ctx context.Context) (*Lease, error) {
	return m.acquire(ctx, "lock", lease.Locker.Lock, true)
}

// TryLock is Lock without the wait: one request for each lock, up to the first that is refused. If
// another holds one of the locks, the error matches ErrBusy. If one was lost before all were
// granted, it matches ErrLost.
func (m *MultiLock) TryLock(ctx context.Context) (*Lease, error) {
	return m.acquire(ctx, "try lock", lease.Locker.TryLock, false)
}

// LeaseFrom returns the lease that ctx carries on all of the locks: the innermost, if it carries
// several. It may have ended. ok is false if ctx carries none. LeaseFrom does no I/O. A lease of other
// Clients does not count. A context that carries a lease on a MultiLock also carries those on its
// locks, one by one.
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
