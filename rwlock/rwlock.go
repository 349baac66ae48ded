// Package rwlock is the read/write lock, in the layout of Redisson's
// RReadWriteLock, so that Go and Java processes exclude each other: any number
// of readers hold it together, or one writer alone.
//
// Neither side starves the other, across processes too: whoever waits is let in
// in the order of coming, except that readers whom a writer was let in before go
// ahead of the next one.
//
// Programs make an RWMutex with Client.RWMutex.
package rwlock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/lease"
)

// RWMutex is a lock that many readers, or one writer, hold, shared by whoever
// names it. It holds no state: a value may be used by any number of goroutines,
// and what differs from holder to holder is in the Lease that each call returns.
//
// As a lease.Locker it is its write side.
type RWMutex struct {
	engine   *engine.Engine
	place    place
	settings lease.Settings
	err      error // why it cannot be used
}

var _ lease.Locker = (*RWMutex)(nil)

// New returns the lock of that name, which stands at key in Redis. It does no
// I/O; what is wrong with the arguments, each call says.
func New(e *engine.Engine, name, key string, settings lease.Settings) *RWMutex {
	m := &RWMutex{engine: e, settings: settings, place: place{name: name, line: linePrefix + key}}
	m.place.at, m.err = keys.ForRW(key)
	if !settings.JavaTokens() {
		m.place.tokenLife = tokenLife.Milliseconds()
	}
	return m
}

// Broken returns a lock of which every call fails with err.
func Broken(name string, err error) *RWMutex {
	return &RWMutex{place: place{name: name}, err: err}
}

// Name returns the name that the lock was made with.
func (m *RWMutex) Name() string { return m.place.name }

// Place implements lease.Placed.
func (m *RWMutex) Place() string { return lease.PlaceOf(m.engine, m.place.Key()) }

// Lock waits until nobody else holds the lock, and returns the Lease of a writer,
// which the caller must release. Its token is greater than that of every writer
// before. A context made by Lease.Context of a write lease on this same lock
// re-enters it: that returns at once, with a Lease of its own. One that carries
// a read lease, and no write lease, gets ErrUpgrade at once: it would wait for
// itself.
//
// It waits as long as ctx allows. When ctx ends first the error matches ctx's
// and, if the lock was found held, ErrBusy; nothing is left behind, and nobody
// else's hold is touched. Transient errors of Redis are retried until ctx ends;
// ErrWrongType, ErrOutOfMemory, ErrDenied and ErrBadArgument are returned at
// once. The lease of an ended hold, carried by ctx, gives its own error.
func (m *RWMutex) Lock(ctx context.Context) (*lease.Lease, error) {
	return m.lock(ctx, "lock", true)
}

// TryLock is Lock without the wait: one request, no subscription. If another
// holds the lock, or waits for it, the error matches ErrBusy: a try does not
// overtake who waits. If Redis does not answer within 3 s, or before ctx's
// deadline, the error matches ErrUnavailable.
func (m *RWMutex) TryLock(ctx context.Context) (*lease.Lease, error) {
	return m.lock(ctx, "try lock", false)
}

// RLock waits until no writer holds the lock, and returns the Lease of a reader,
// which the caller must release. Its token is that of the last writer, 0 if none
// is known. While a writer that came earlier waits, a new reader waits behind it,
// but for no more than one such writer. Otherwise RLock is as Lock.
//
// A context that carries a read lease re-enters it at once, whoever waits. So
// does one that carries a write lease, with a read hold of its own beside the
// write hold. The two may be released in any order: if the write lease is
// released first the reader stays in, and others may join it.
func (m *RWMutex) RLock(ctx context.Context) (*lease.Lease, error) {
	return m.rlock(ctx, "lock", true)
}

// TryRLock is RLock without the wait: one request, no subscription. If a writer
// holds the lock, or waits for it, the error matches ErrBusy. If Redis does not answer
// within 3 s, or before ctx's deadline, the error matches ErrUnavailable.
func (m *RWMutex) TryRLock(ctx context.Context) (*lease.Lease, error) {
	return m.rlock(ctx, "try lock", false)
}

// WLocker returns the write side: m as a lease.Locker.
func (m *RWMutex) WLocker() lease.Locker { return m }

// RLocker returns the read side as a lease.Locker.
func (m *RWMutex) RLocker() lease.Locker { return rlocker{m} }

type rlocker struct{ m *RWMutex }

func (r rlocker) Lock(ctx context.Context) (*lease.Lease, error)    { return r.m.RLock(ctx) }
func (r rlocker) TryLock(ctx context.Context) (*lease.Lease, error) { return r.m.TryRLock(ctx) }
func (r rlocker) Place() string                                     { return r.m.Place() }

func (m *RWMutex) lock(ctx context.Context, op string, wait bool) (*lease.Lease, error) {
	if m.err != nil {
		return nil, m.fail(op, m.err)
	}
	w := &writing{place: &m.place, asking: asking{since: time.Now(), waits: wait}}
	if lease.Carried(ctx, m.engine, w) == nil {
		if r := lease.Carried(ctx, m.engine, m.reading()); r != nil {
			if err := r.Err(); err != nil {
				return nil, err
			}
			return nil, m.fail(op, errs.Upgrade)
		}
	}
	return m.request(w, wait).Acquire(ctx)
}

func (m *RWMutex) rlock(ctx context.Context, op string, wait bool) (*lease.Lease, error) {
	r := &reading{place: &m.place, asking: asking{since: time.Now(), waits: wait}}
	if m.err != nil {
		return nil, lease.OpError(op, r, m.err)
	}
	if lease.Carried(ctx, m.engine, r) == nil {
		if w := lease.Carried(ctx, m.engine, m.writing()); w != nil {
			return m.rlockUnder(ctx, op, w)
		}
	}
	return m.request(r, wait).Acquire(ctx)
}

// rlockUnder takes the read side under a write hold of one's own. It does not
// wait: who holds the write side is in, and those in line wait for just that. The
// read hold has an owner of its own, so that two of them under one write hold do
// not share a field.
func (m *RWMutex) rlockUnder(ctx context.Context, op string, w *lease.Lease) (*lease.Lease, error) {
	if err := w.Err(); err != nil {
		return nil, err
	}
	r := m.reading()
	r.under = w
	l, err := m.request(r, false).Acquire(ctx)
	if !errors.Is(err, errs.Busy) {
		return l, err
	}
	// Redis does not have the write hold, which is therefore over.
	m.engine.EndHeld(m.place.Key(), w.Owner().String(), errs.Lost)
	if err := w.Err(); err != nil {
		return nil, err
	}
	return nil, lease.OpError(op, r, errs.Lost)
}

func (m *RWMutex) request(r lease.Resource, wait bool) lease.Request {
	return lease.Request{Engine: m.engine, Resource: r, Settings: m.settings, Try: !wait}
}

func (m *RWMutex) writing() *writing { return &writing{place: &m.place} }
func (m *RWMutex) reading() *reading { return &reading{place: &m.place} }

func (m *RWMutex) fail(op string, err error) error {
	return lease.OpError(op, m.writing(), err)
}
