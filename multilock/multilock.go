// Package multilock holds several locks as one: all of them (MultiLock), or one
// lock on a majority of independent servers (Quorum, known as Redlock).
//
// Programs make them with holdfast.NewMultiLock and holdfast.NewQuorum.
package multilock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/lease"
)

// MultiLock is several locks that are held together or not at all. They may be of any kind but a
// PermitSemaphore's, and of different Clients. A MultiLock holds no state: any number of goroutines
// may use one value.
//
// The locks are taken one after another, in an order that does not depend on how they were given:
// by their keys in Redis, and for locks of the same key on different servers by the addresses that
// the Clients were given. So two callers that want the same locks never wait for each other in a
// circle, in whatever order they name them. Processes must therefore use the same addresses if they
// lock one name on several servers. And no process may lock one of several locks alone and then ask
// for the rest.
type MultiLock struct {
	members []member // in the order in which they are taken
	name    string   // of all of them, for spans
	err     error    // why it cannot be used

	// identity is equal for values that are the same locks.
	identity string
}

// member is one of the locks.
type member struct {
	locker lease.Locker
	place  string
	given  int // its index among the arguments of New
}

// New returns all of the locks as one. It does no I/O. If the arguments are wrong, every call says
// so: if there are no locks, if one is given twice, or if one is not a lease.Placed, such as the
// permits of a PermitSemaphore.
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

// errNone is why a MultiLock without locks cannot be used.
var errNone = fmt.Errorf("no locks were given: %w", errs.BadArgument)

// usable returns nil, or why m cannot be used.
func (m *MultiLock) usable() error {
	if m == nil || m.err == nil && len(m.members) == 0 {
		return errNone
	}
	return m.err
}

// Lock waits until all of the locks are granted, and returns the Lease on them, which the caller
// must release. A context made by Lease.Context re-enters all of them, and each by itself.
//
// Lock waits as long as ctx allows, for one lock after another. Meanwhile the locks that it has are
// renewed, or run out, as their options say. If one of them is lost while Lock waits for another,
// Lock begins again, after a pause of 250 ms at the most. On failure Lock releases what it has
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

// LeaseFrom returns the lease on all of the locks that ctx carries: the innermost, if it carries
// several. It may have ended. ok is false if ctx carries none. LeaseFrom asks nobody. A lease of other
// Clients does not count. A context that carries a lease on a MultiLock also carries those on its
// locks, one by one.
func (m *MultiLock) LeaseFrom(ctx context.Context) (l *Lease, ok bool) {
	if m.usable() != nil {
		return nil, false
	}
	for {
		l, under, found := carriedBy[*Lease](ctx, m.identity)
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

// acquiring is the method by which each lock is asked for: Lock or TryLock.
type acquiring = func(lease.Locker, context.Context) (*lease.Lease, error)

// acquire takes all locks, and reports that to telemetry as one acquisition.
func (m *MultiLock) acquire(ctx context.Context, op string, lock acquiring, wait bool) (*Lease, error) {
	if err := m.usable(); err != nil {
		return nil, errs.Wrap(op+" multilock", err)
	}
	outer := m.outer(ctx)
	a := telemetry.Acquired{Reentrant: outer != nil, Waited: telemetry.ToldByParts}
	ctx, whole := telemetry.Together(ctx, kindMulti, m.name)
	var taken []*lease.Lease
	var err error
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		a.Attempts++
		taken, err = m.take(ctx, op, lock)
		if !wait || !errors.Is(err, errAgain) {
			break
		}
		if end := engine.Sleep(ctx, pause); end != nil {
			err = m.failed(op, errs.Ended(ctx, fmt.Errorf("%w: %w", errs.Busy, end)))
			break
		}
	}
	a.Outcome, a.Err = telemetry.OutcomeOf(err, telemetry.OutcomeAcquired), err
	whole.End(a)
	if err != nil {
		return nil, err
	}
	return m.begin(taken, outer, whole.Telemetry()), nil
}

// errAgain says that a lock was lost while Lock waited for another.
var errAgain = fmt.Errorf("lost while another was waited for: %w", errs.Lost)

// take takes every lock, or none.
func (m *MultiLock) take(ctx context.Context, op string, lock acquiring) ([]*lease.Lease, error) {
	taken := make([]*lease.Lease, 0, len(m.members))
	// The wait for a lock also ends when a lock that was taken before is lost. It does not carry their
	// leases: what has not all of its locks is no work yet, that a Shutdown would wait for.
	held, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, one := range m.members {
		l, err := lock(one.locker, held)
		if err == nil {
			taken = append(taken, l)
			unwatch := context.AfterFunc(l.Context(held), func() { cancel(l.Err()) })
			defer unwatch()
			continue
		}
		switch over, end := ended(taken), ctx.Err(); {
		case over != nil && end == nil:
			err = over
		case over != nil && !errors.Is(err, end): // it says why held ended, and ctx has ended too
			err = fmt.Errorf("%w: %w", err, end)
		}
		giveBack(ctx, taken)
		return nil, m.failed(op, err)
	}
	if over := ended(taken); over != nil {
		giveBack(ctx, taken)
		return nil, m.failed(op, over)
	}
	return taken, nil
}

// failed adds to err what was being done to all of the locks.
func (m *MultiLock) failed(op string, err error) error {
	return errs.Wrap(fmt.Sprintf("%s all of %d", op, len(m.members)), err)
}

// ended returns why one of the leases has ended; nil if none has.
func ended(taken []*lease.Lease) error {
	for _, l := range taken {
		switch err := l.Err(); {
		case errors.Is(err, errs.Lost):
			return fmt.Errorf("%w: %w", errAgain, err)
		case err != nil:
			return err
		}
	}
	return nil
}

// giveBack releases what was taken, and waits for that as long as ctx allows.
func giveBack(ctx context.Context, taken []*lease.Lease) {
	for _, done := range startRelease(ctx, taken) {
		select {
		case <-done: //nolint:errcheck // the attempt has an error of its own
		case <-ctx.Done():
		}
	}
}

// startRelease releases the leases, all at the same time, so that a server that does not answer
// does not delay the others.
func startRelease(ctx context.Context, leases []*lease.Lease) []<-chan error {
	released := make([]<-chan error, len(leases))
	for i, l := range leases {
		released[i] = (*hold.Lease)(l).GiveBack(ctx)
	}
	return released
}
