// Package rwlock has the read/write lock: any number of readers hold it together, or one writer holds it
// alone. It has the layout of Redisson's RReadWriteLock, so Go and Java processes exclude each other.
//
// Readers do not starve writers, and writers do not starve readers, even across processes: waiters get the
// lock in the order in which Redis has heard of them. Redis has not heard of a waiter that waits behind others
// of its process, or that has just become the first of them: a later caller of another process may get the lock
// before it. Readers that were already waiting when a writer got the lock go before the next writer.
//
// Programs make an RWMutex with Client.RWMutex.
package rwlock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

// RWMutex is a lock that many readers or one writer hold. All callers that use its name share it. An
// RWMutex holds no state: any number of goroutines may use one value. What differs from holder to holder is
// in the Lease that each call returns.
//
// If an RWMutex is used as a lease.Locker, it locks its write side.
type RWMutex struct {
	engine   *engine.Engine
	base     base
	settings hold.Settings
	err      error // why it cannot be used
}

var _ lease.Locker = (*RWMutex)(nil)

// New returns the lock of that name. key is the key of the lock in Redis. New does no I/O. If an argument
// is wrong, every call on the lock returns the error.
func New(e *engine.Engine, name, key string, settings hold.Settings) *RWMutex {
	m := &RWMutex{engine: e, settings: settings, base: base{name: name, line: linePrefix + key}}
	if m.err = e.Broken(); m.err == nil {
		m.base.at, m.err = e.Keys.ForRW(key)
	}
	if m.err == nil && settings.JavaTokens {
		m.err = e.Keys.CheckJava(key)
	}
	m.base.tokenLife = settings.TokenKept().Milliseconds()
	return m
}

// Name returns the name that the lock was made with.
func (m *RWMutex) Name() string { return engine.Made(m).base.name }

// Place implements lease.Placed.
func (m *RWMutex) Place() string {
	m = engine.Made(m)
	return hold.PlaceOf(m.engine, m.base.Key())
}

// Lock waits until nobody else holds the lock, and returns the Lease of a writer, which the caller must
// release. The token of that Lease is greater than the token of every earlier writer. If ctx comes from
// Lease.Context of a write lease on this same lock, Lock re-enters the lock: it returns at once, with
// another Lease. If ctx carries a read lease and no write lease on this lock, Lock returns ErrUpgrade at
// once, because the caller would wait for itself.
//
// Lock waits as long as ctx allows. If ctx ends first, nothing is left behind in Redis, no other hold
// is changed, and the error matches ctx's error. It also matches ErrBusy if Lock has found the lock held. If Redis returns a transient error, Lock tries again until ctx ends. Lock returns ErrWrongType,
// ErrOutOfMemory, ErrDenied and ErrBadArgument at once. If ctx carries a lease whose hold has ended, Lock
// returns the error of that lease.
func (m *RWMutex) Lock(ctx context.Context) (*lease.Lease, error) {
	return lease.Of(m.lock(ctx, "lock", true))
}

// TryLock is Lock without the wait: it sends one request and does not subscribe. If another caller holds
// the lock, or waits for it, the error matches ErrBusy, because TryLock does not overtake a waiter. If
// Redis does not answer within 3 s, or before ctx's deadline, the error matches ErrUnavailable.
func (m *RWMutex) TryLock(ctx context.Context) (*lease.Lease, error) {
	return lease.Of(m.lock(ctx, "try lock", false))
}

// RLock waits until no writer holds the lock, and returns the Lease of a reader, which the caller must
// release. The token of that Lease is the token of the last writer, or 0 if no writer is known. If a writer
// came earlier and still waits, a new reader waits for that writer too, but never for more than one such
// writer. Otherwise RLock is like Lock.
//
// If ctx carries a read lease on this lock, RLock re-enters the lock at once, even if a writer waits. If
// ctx carries a write lease on this lock, RLock is also granted at once. The owner then has a read hold in
// addition to its write hold. The two holds may be released in any order. If the write lease is released
// first, the reader keeps the lock, and other readers can get the lock too.
func (m *RWMutex) RLock(ctx context.Context) (*lease.Lease, error) {
	return lease.Of(m.rlock(ctx, "lock", true))
}

// TryRLock is RLock without the wait: it sends one request and does not subscribe. If a writer holds the
// lock, or waits for it, the error matches ErrBusy. If Redis does not answer within 3 s, or before ctx's
// deadline, the error matches ErrUnavailable.
func (m *RWMutex) TryRLock(ctx context.Context) (*lease.Lease, error) {
	return lease.Of(m.rlock(ctx, "try lock", false))
}

// LeaseFrom returns the write lease on this lock that ctx carries. If ctx carries several, LeaseFrom
// returns the innermost. The lease may have ended. If ctx carries no write lease on this lock, ok is false.
// A lease of another Client does not count. LeaseFrom does no I/O. To find a read lease, give RLocker to
// holdfast.LeaseFrom.
func (m *RWMutex) LeaseFrom(ctx context.Context) (l *lease.Lease, ok bool) {
	return m.leaseFrom(ctx, m.writing())
}

func (m *RWMutex) leaseFrom(ctx context.Context, r hold.Resource) (l *lease.Lease, ok bool) {
	if m.usable() != nil {
		return nil, false
	}
	carried := hold.Carried(ctx, m.engine, r)
	return (*lease.Lease)(carried), carried != nil
}

// WLocker returns the write side as a lease.Locker, which is m itself.
func (m *RWMutex) WLocker() lease.Locker { return m }

// RLocker returns the read side as a lease.Locker.
func (m *RWMutex) RLocker() lease.Locker { return rlocker{m} }

type rlocker struct{ m *RWMutex }

func (r rlocker) Lock(ctx context.Context) (*lease.Lease, error)    { return r.m.RLock(ctx) }
func (r rlocker) TryLock(ctx context.Context) (*lease.Lease, error) { return r.m.TryRLock(ctx) }
func (r rlocker) Place() string                                     { return r.m.Place() }

func (r rlocker) LeaseFrom(ctx context.Context) (l *lease.Lease, ok bool) {
	return r.m.leaseFrom(ctx, r.m.reading())
}

func (m *RWMutex) lock(ctx context.Context, op string, wait bool) (*hold.Lease, error) {
	if err := m.usable(); err != nil {
		return nil, m.fail(op, err)
	}
	w := &writing{base: &m.base, asking: asking{since: time.Now(), waits: wait}}
	if hold.Carried(ctx, m.engine, w) == nil {
		if r := hold.Carried(ctx, m.engine, m.reading()); r != nil {
			if err := r.Err(); err != nil {
				return nil, err
			}
			return nil, m.fail(op, errs.Upgrade)
		}
	}
	return m.request(w, wait).Acquire(ctx)
}

func (m *RWMutex) rlock(ctx context.Context, op string, wait bool) (*hold.Lease, error) {
	if err := m.usable(); err != nil {
		return nil, hold.OpError(op, m.reading(), err)
	}
	r := &reading{base: &m.base, asking: asking{since: time.Now(), waits: wait}}
	if hold.Carried(ctx, m.engine, r) == nil {
		if w := hold.Carried(ctx, m.engine, m.writing()); w != nil {
			return m.rlockUnder(ctx, op, wait, w)
		}
	}
	return m.request(r, wait).Acquire(ctx)
}

// rlockUnder takes the read side under the caller's own write hold. It does not wait: the caller
// holds the lock already, and the waiters wait for just that hold. The read hold has an owner of
// its own, so that two read holds under one write hold do not share a field.
func (m *RWMutex) rlockUnder(ctx context.Context, op string, wait bool, w *hold.Lease) (*hold.Lease, error) {
	if err := w.Err(); err != nil {
		return nil, err
	}
	r := m.reading()
	r.under = w
	request := m.request(r, wait)
	request.AtOnce = true
	l, err := request.Acquire(ctx)
	if !errors.Is(err, errs.Busy) {
		return l, err
	}
	// Redis does not have the write hold, so that hold is over.
	m.engine.EndHeld(m.base.Key(), w.Owner().String(), errs.Lost)
	if err := w.Err(); err != nil {
		return nil, err
	}
	return nil, hold.OpError(op, r, errs.Lost)
}

func (m *RWMutex) request(r hold.Resource, wait bool) hold.Request {
	return hold.Request{Engine: m.engine, Resource: r, Settings: m.settings, Try: !wait}
}

func (m *RWMutex) writing() *writing { return &writing{base: &engine.Made(m).base} }
func (m *RWMutex) reading() *reading { return &reading{base: &engine.Made(m).base} }

func (m *RWMutex) usable() error {
	m = engine.Made(m)
	return engine.Usable(m.engine, m.err)
}

func (m *RWMutex) fail(op string, err error) error {
	return hold.OpError(op, m.writing(), err)
}
