// Package slots leases numbers, from 0 up: each holder has a different number.
package slots

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/lease"
)

// Slots is a fixed set of numbers under one name, from 0 to size-1. Each number has one holder at a
// time, in all processes together. The numbers are leased: if a holder dies, its number is free again
// when its lease is over. Use Slots for a number that must differ from process to process: the worker id
// in ids such as snowflake's, the ordinal of a replica, a port.
//
// The size is stored in Redis while any number is taken. Then Acquire of a Slots with another size fails
// with lease.ErrBadArgument, because the processes would not agree on what the numbers mean. To change
// the size, release all numbers first.
//
// A Slots has no state: any number of goroutines may use one value.
type Slots struct {
	engine     *engine.Engine
	name       string
	at         keys.Numbered
	size       int
	prefer     int // -1: none
	quarantine time.Duration
	settings   hold.Settings
	err        error // why it cannot be used
}

// New returns the Slots of that name, which is stored at key in Redis. It does no I/O. If an argument is wrong, each
// call on the Slots returns the error.
func New(e *engine.Engine, name, key string, size int, defaults []lease.Option, options []Option) *Slots {
	o := newSettings(options)
	s := &Slots{
		engine: e, name: name, size: size, prefer: o.prefer, quarantine: o.quarantine,
		settings: hold.NewSettings(defaults, o.lease),
	}
	if s.err = e.Broken(); s.err == nil {
		s.err = o.check(size)
	}
	if s.err == nil {
		s.at, s.err = e.Keys.ForSlots(key)
	}
	return s
}

// Name returns the name that the Slots was made with.
func (s *Slots) Name() string { return engine.Made(s).name }

// Size returns how many numbers there are.
func (s *Slots) Size() int { return engine.Made(s).size }

// Acquire waits until a number is free. It returns the preferred number if that is free (see Prefer), and the lowest
// free number otherwise. The caller must release the Slot. Its lease is renewed or fixed as the options say. Its Token
// is greater than the token of every earlier holder of any number of the name. With a context made by Slot.Context,
// Acquire does not re-enter: each Acquire takes another number.
//
// If all numbers are taken, callers wait in order. Callers of one process get numbers in the order of their calls.
// Processes get numbers in the order in which their first waiting callers came.
//
// Acquire waits as long as ctx allows. If ctx ends first, the error matches ctx's error, and ErrBusy if all numbers
// were taken. Acquire then leaves nothing in Redis. If processes with another size hold numbers of the name, Acquire
// returns an error that matches ErrBadArgument at once. Transient errors of Redis are retried until ctx ends;
// ErrWrongType, ErrOutOfMemory, ErrDenied and ErrBadArgument are returned at once.
func (s *Slots) Acquire(ctx context.Context) (Slot, error) { return s.request(ctx, "acquire", true) }

// TryAcquire is Acquire without the wait: it sends one request, and does not subscribe. If all numbers are taken, or if
// other callers wait for the free numbers, the error matches ErrBusy. If Redis does not answer within 3 s, or before
// ctx's deadline, the error matches ErrUnavailable.
func (s *Slots) TryAcquire(ctx context.Context) (Slot, error) {
	return s.request(ctx, "try acquire", false)
}

func (s *Slots) request(ctx context.Context, op string, wait bool) (Slot, error) {
	if err := s.usable(); err != nil {
		return Slot{}, s.fail(op, err)
	}
	r := &resource{Slots: s, since: time.Now(), waits: wait}
	l, err := lease.Of(hold.Request{
		Engine: s.engine, Resource: r, Settings: s.settings, Try: !wait, Op: op, Afresh: true,
	}.Acquire(ctx))
	return Slot{l}, err
}

// LeaseFrom returns the Slot that ctx carries for a number of this name: the innermost, if ctx carries
// several. Its lease may have ended. ok is false if ctx carries no such Slot. LeaseFrom does no I/O. A
// lease of another Client does not count.
func (s *Slots) LeaseFrom(ctx context.Context) (slot Slot, ok bool) {
	if s.usable() != nil {
		return Slot{}, false
	}
	carried := hold.Carried(ctx, s.engine, &resource{Slots: s})
	return Slot{(*lease.Lease)(carried)}, carried != nil
}

// Locker returns the Slots as a Locker, for Do and any other function that takes a Locker. Its Lock is
// Acquire, and its TryLock is TryAcquire. In the work, LeaseFrom finds the number in the work's context.
func (s *Slots) Locker() lease.Locker { return locker{s} }

type locker struct{ slots *Slots }

func (l locker) Lock(ctx context.Context) (*lease.Lease, error) {
	slot, err := l.slots.Acquire(ctx)
	return slot.Lease, err
}

func (l locker) TryLock(ctx context.Context) (*lease.Lease, error) {
	slot, err := l.slots.TryAcquire(ctx)
	return slot.Lease, err
}

func (l locker) LeaseFrom(ctx context.Context) (held *lease.Lease, ok bool) {
	slot, ok := l.slots.LeaseFrom(ctx)
	return slot.Lease, ok
}

// Free returns how many numbers are free. Numbers in quarantine do not count as free. Free asks Redis's
// master.
func (s *Slots) Free(ctx context.Context) (int, error) {
	s = engine.Made(s)
	taken, _, err := s.look(ctx, "query", -1)
	return max(s.size-taken, 0), err
}

// ForceRelease takes the number n from its holder, or ends its quarantine, and notifies waiting callers. It reports
// whether the number was taken. The holder's lease ends with ErrLost: at once if the lease belongs to this Client,
// otherwise at its next renewal.
//
// ForceRelease does not stop the holder's work. Call it only if you know that the work has ended.
func (s *Slots) ForceRelease(ctx context.Context, n int) (bool, error) {
	const op = "force release"
	s = engine.Made(s)
	if n < 0 || n >= s.size {
		return false, s.fail(op, fmt.Errorf("the number %d of %d: %w", n, s.size, errs.BadArgument))
	}
	_, owner, err := s.look(ctx, op, n)
	if err != nil || owner == "" {
		return false, err
	}
	publish, err := s.engine.Conn.PublishCommand(ctx)
	if err != nil {
		return false, s.fail(op, err)
	}
	// With the owner: if the reply is lost and the call is sent again, a holder that got the number in
	// the meantime keeps it.
	call := &conn.Call{Script: freeScript, Keys: []string{s.at.Taken}, Args: []any{n, owner, publish, s.at.Channel}}
	if err := s.run(ctx, op, call); err != nil {
		return false, err
	}
	s.engine.EndHeld(s.at.Taken, owner, errs.Lost)
	_, unheard := call.Outstanding() // an earlier sending may have done it
	return call.Status() == conn.Done || unheard, nil
}

// look returns how many numbers are taken, and who has the number n; n is -1 for none.
func (s *Slots) look(ctx context.Context, op string, n int) (taken int, owner string, err error) {
	call := &conn.Call{Script: lookScript, Keys: []string{s.at.Taken}, Args: []any{n}}
	if err := s.run(ctx, op, call); err != nil {
		return 0, "", err
	}
	taken, owner = lookIn(call)
	return taken, owner, nil
}

func (s *Slots) run(ctx context.Context, op string, call *conn.Call) error {
	if err := s.usable(); err != nil {
		return s.fail(op, err)
	}
	if err := s.engine.Conn.Run(ctx, call); err != nil {
		return s.fail(op, s.engine.Foreign(ctx, engine.SortedSet, s.at.Taken, err))
	}
	return nil
}

// usable returns nil, or why s cannot be used.
func (s *Slots) usable() error {
	s = engine.Made(s)
	return engine.Usable(s.engine, s.err)
}

func (s *Slots) fail(op string, err error) error { return errs.Call(op, kind, s.Name(), err) }

// Slot is a lease on one number. An Acquire that fails returns the zero Slot, which counts as a lease
// that has ended: see lease.Lease.
type Slot struct{ *lease.Lease }

// Number returns the number: from 0 to Size-1. It is -1 if there is no lease.
func (s Slot) Number() int {
	r, ok := (*hold.Lease)(s.Lease).Resource().(*resource)
	if !ok {
		return -1
	}
	return numberIn(r.asked)
}
