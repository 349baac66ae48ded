// Package slots leases numbers from 0 up. At any time, each holder has a different number. Programs make
// a Slots with Client.Slots.
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

// Slots is a fixed set of numbers under one name, from 0 to size-1. In all processes together, each
// number has at most one holder at a time. Each holder has a lease on its number: if the holder dies,
// the number is free again when the lease is over. Use Slots for a number that must differ from process
// to process, such as the worker id in ids like snowflake's, the ordinal of a replica, or a port.
//
// While any number is taken, Redis stores the size. In that time, Acquire fails with
// lease.ErrBadArgument for a Slots of the same name with another size, because processes with different
// sizes would not agree on what the numbers mean. To change the size, release all numbers first.
//
// A Slots has no state of its own, and any number of goroutines may use one Slots.
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

// New returns the Slots of that name. Programs call Client.Slots, which calls New. key is the name as it
// is stored in Redis. defaults are the lease options of the Client, and options override them. New does
// no I/O. If an argument is wrong, each call on the returned Slots returns the error.
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

// Name returns the name that the program gave to Client.Slots.
func (s *Slots) Name() string { return engine.Made(s).name }

// Size returns how many numbers the Slots has.
func (s *Slots) Size() int { return engine.Made(s).size }

// Acquire waits until a number is free, and returns a Slot, which is a lease on that number. Acquire
// takes the number that the option Prefer names, if that number is free. Otherwise it takes the lowest
// free number. The caller must release the Slot. The lease is renewed or fixed as the options say. The
// Token of the Slot is greater than the token of every earlier holder of any number of this name.
// Acquire never re-enters: each Acquire takes another number, even with a context that Slot.Context has
// returned.
//
// If all numbers are taken, callers wait in order. Callers of one process get numbers in the order of
// their calls. Processes get numbers in the order in which their first waiting callers came.
//
// Acquire waits as long as ctx allows. If ctx ends first, Acquire leaves nothing in Redis, and the error
// matches ctx's error. If all numbers were taken, the error also matches ErrBusy. If processes with
// another size hold numbers of this name, Acquire returns at once an error that matches ErrBadArgument.
// After a transient error of Redis, Acquire tries again until ctx ends. If the error matches
// ErrWrongType, ErrOutOfMemory, ErrDenied or ErrBadArgument, Acquire returns the error at once.
func (s *Slots) Acquire(ctx context.Context) (Slot, error) { return s.request(ctx, "acquire", true) }

// TryAcquire takes a number as Acquire does, but does not wait. It sends one request to Redis, and does
// not subscribe to messages. If all numbers are taken, or if other callers wait for the free numbers,
// the error matches ErrBusy. If Redis does not answer within 3 s, or before ctx's deadline, the error
// matches ErrUnavailable.
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

// LeaseFrom returns the Slot of this name that ctx carries. A context from Slot.Context carries the
// Slot. If ctx carries several Slots of this name, LeaseFrom returns the innermost. The lease of the
// returned Slot may have ended. ok is false if ctx carries no Slot of this name. A Slot of another
// Client does not count. LeaseFrom does no I/O.
func (s *Slots) LeaseFrom(ctx context.Context) (slot Slot, ok bool) {
	if s.usable() != nil {
		return Slot{}, false
	}
	carried := hold.Carried(ctx, s.engine, &resource{Slots: s})
	return Slot{(*lease.Lease)(carried)}, carried != nil
}

// Locker returns the Slots as a Locker, for Do and any other function that takes a Locker. The Lock of
// the Locker is Acquire, and the TryLock of the Locker is TryAcquire. In the work that Do calls,
// LeaseFrom returns the Slot from the work's context.
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

// Free returns how many numbers are free. A number in quarantine does not count as free. Free asks the
// master of Redis.
func (s *Slots) Free(ctx context.Context) (int, error) {
	s = engine.Made(s)
	taken, _, err := s.look(ctx, "query", -1)
	return max(s.size-taken, 0), err
}

// ForceRelease takes the number n from its holder, or ends the quarantine of n, and notifies callers
// that wait for a number. If from names owners, and another has n, or has put it into quarantine, for
// example because n has changed hands since Inspect, ForceRelease changes nothing. It reports whether it
// took n, or ended its quarantine. The holder's lease ends with ErrLost. It ends at once if it belongs to
// this Client, and otherwise at its next renewal.
//
// ForceRelease does not stop the holder's work. Call ForceRelease only if you know that the work has
// ended.
func (s *Slots) ForceRelease(ctx context.Context, n int, from ...lease.Owner) (bool, error) {
	const op = "force release"
	s = engine.Made(s)
	if n < 0 || n >= s.size {
		return false, s.fail(op, fmt.Errorf("the number %d of %d: %w", n, s.size, errs.BadArgument))
	}
	_, owner, err := s.look(ctx, op, n)
	if err != nil || owner == "" || !hold.Among(from)(owner) {
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

// Slot is a lease on one number of a Slots. If Acquire fails, it returns the zero Slot, which counts as
// a lease that has ended: see lease.Lease.
type Slot struct{ *lease.Lease }

// Number returns the number that the Slot leases, from 0 to size-1. For the zero Slot, which has no
// lease, Number returns -1.
func (s Slot) Number() int {
	r, ok := (*hold.Lease)(s.Lease).Resource().(*resource)
	if !ok {
		return -1
	}
	return numberIn(r.asked)
}
