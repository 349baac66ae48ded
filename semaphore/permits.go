// PermitSemaphore: permits that are leased.

package semaphore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/lease"
)

const (
	permitsKind = "permits" // for errors, spans and metrics

	// mostLeased is the greatest number of permits that one lease may have: each has an id of its
	// own in Redis, and a script names them all.
	mostLeased = 1000
)

// PermitSemaphore is a number of permits that are leased. All callers that use its name share it. If a
// holder dies, its permits are free again when its lease is over. If a holder is cut off from Redis, its
// Lease notifies the holder.
//
// A PermitSemaphore holds no state: any number of goroutines may use one value. What differs from holder to
// holder is in the Lease that each Acquire returns.
type PermitSemaphore struct {
	engine   *engine.Engine
	name     string
	at       keys.Permits
	calls    engine.Ledger
	settings hold.Settings
	err      error // why it cannot be used
}

// NewPermits returns the semaphore of that name. key is the key of the semaphore in Redis. NewPermits does
// no I/O. If an argument is wrong, every call on the semaphore returns the error.
func NewPermits(e *engine.Engine, name, key string, settings hold.Settings) *PermitSemaphore {
	s := &PermitSemaphore{engine: e, name: name, settings: settings}
	if s.err = e.Broken(); s.err == nil {
		s.at, s.err = e.Keys.ForPermits(key)
		s.calls = e.Ledger(s.at.Calls)
	}
	return s
}

// Name returns the name that the semaphore was made with.
func (s *PermitSemaphore) Name() string { return engine.Made(s).name }

// Acquire waits until n permits are free at the same time, and returns one Lease for all of them, which the
// caller must release. n is from 1 to 1000. The Lease is renewed or fixed as the semaphore's options say.
// Its Token is 0. IDs returns the ids of its permits. An Acquire with a context of Lease.Context does not
// re-enter anything, because each Acquire takes other permits.
//
// A call for fewer permits may overtake a call that waits for more. Within one process this ends when the
// waiting call has waited for a second.
//
// Acquire waits as long as ctx allows. If ctx ends first, the error matches ctx's error. It also matches
// ErrBusy if too few permits were free. Then nothing is taken. If the semaphore has fewer than n permits in
// all, the error matches ErrNoPermits at once; a semaphore that has not been set has no permits. If Redis
// returns a transient error, Acquire tries again until ctx ends. It returns ErrWrongType, ErrOutOfMemory,
// ErrDenied and ErrBadArgument at once.
func (s *PermitSemaphore) Acquire(ctx context.Context, n int) (*lease.Lease, error) {
	return s.request(ctx, n, "acquire", false)
}

// TryAcquire is Acquire without the wait: it sends one request and does not subscribe. If too few permits
// are free, the error matches ErrBusy. It also matches ErrBusy if a call of this process for more permits
// has waited for more than a second. If Redis does not answer within 3 s, or before ctx's deadline, the
// error matches ErrUnavailable.
func (s *PermitSemaphore) TryAcquire(ctx context.Context, n int) (*lease.Lease, error) {
	return s.request(ctx, n, "try acquire", true)
}

func (s *PermitSemaphore) request(ctx context.Context, n int, op string, try bool) (*lease.Lease, error) {
	if err := s.usable(); err != nil {
		return nil, s.fail(op, err)
	}
	if n < 1 || n > mostLeased {
		return nil, s.fail(op, fmt.Errorf("%d permits, want 1 to %d: %w", n, mostLeased, errs.BadArgument))
	}
	l, err := hold.Request{
		Engine:   s.engine,
		Resource: &resource{name: s.name, at: s.at, n: n, publish: s.engine.Publish(ctx)},
		Settings: s.settings,
		Try:      try,
		Op:       op,
		Afresh:   true,
	}.Acquire(ctx)
	if errors.Is(err, errs.NoPermits) {
		err = s.fail(op, noSuch(n, err))
	}
	return lease.Of(l, err)
}

// noSuch puts the error NOPERMITS of lease.lua into words.
func noSuch(n int, err error) error {
	why := fmt.Sprintf("%d asked for, more than there are in all", n)
	if strings.Contains(err.Error(), "NOPERMITS never set") {
		why = "never set, TrySetPermits was not called"
	}
	return fmt.Errorf("%s: %w", why, errs.NoPermits)
}

// LeaseFrom returns the lease on permits of this semaphore that ctx carries. The lease may be on any number
// of permits. If ctx carries several leases, LeaseFrom returns the innermost. The lease may have ended. If
// ctx carries no such lease, ok is false. A lease of another Client does not count. LeaseFrom does no I/O.
func (s *PermitSemaphore) LeaseFrom(ctx context.Context) (l *lease.Lease, ok bool) {
	if s.usable() != nil {
		return nil, false
	}
	carried := hold.Carried(ctx, s.engine, &resource{at: s.at})
	return (*lease.Lease)(carried), carried != nil
}

// Locker returns n permits of the semaphore as a Locker, for Do and for any other function that takes a
// Locker. Its Lock calls Acquire with n, and its TryLock calls TryAcquire with n.
func (s *PermitSemaphore) Locker(n int) lease.Locker { return locker{s, n} }

type locker struct {
	semaphore *PermitSemaphore
	n         int
}

func (l locker) Lock(ctx context.Context) (*lease.Lease, error) {
	return l.semaphore.Acquire(ctx, l.n)
}

func (l locker) TryLock(ctx context.Context) (*lease.Lease, error) {
	return l.semaphore.TryAcquire(ctx, l.n)
}

func (l locker) LeaseFrom(ctx context.Context) (held *lease.Lease, ok bool) {
	return l.semaphore.LeaseFrom(ctx)
}

// TrySetPermits sets how many permits there are in all, if the semaphore has not been set before. It
// reports whether it has set the semaphore.
//
// If ctx ends before Redis has answered, the error matches ctx's error. If the request was sent, the error
// also matches ErrUnknown: the request may have set the semaphore, or may do so later. SetPermits and
// AddPermits return the same errors.
func (s *PermitSemaphore) TrySetPermits(ctx context.Context, n int) (bool, error) {
	ctx, cancel := engine.Bounded(ctx)
	defer cancel()
	call, err := s.set(ctx, n, 1)
	if err != nil {
		return false, s.fail("set", s.foreign(ctx, err))
	}
	return call.Status() == conn.Done, nil
}

// SetPermits sets how many permits there are in all. If more permits than n are taken, they stay with their
// holders. Then the number of free permits is negative until enough permits are given back.
func (s *PermitSemaphore) SetPermits(ctx context.Context, n int) error {
	if _, err := s.set(ctx, n, 0); err != nil {
		return s.fail("set", err)
	}
	return nil
}

func (s *PermitSemaphore) set(ctx context.Context, n, onlyNew int) (*conn.Call, error) {
	return s.change(ctx, n, func(publish string) engine.Once {
		return engine.Once{
			Script: setScript,
			Key:    s.at.Available,
			Keys:   []string{s.at.Taken},
			Args:   []any{n, onlyNew, publish, s.at.Channel},
		}
	})
}

// AddPermits adds delta to the number of permits in all. delta may be negative. Then the number of free
// permits may become negative too, until enough permits are given back.
func (s *PermitSemaphore) AddPermits(ctx context.Context, delta int) error {
	_, err := s.change(ctx, max(delta, -delta), func(publish string) engine.Once {
		return engine.Once{Script: addScript, Key: s.at.Available, Args: []any{delta, publish, s.at.Channel}}
	})
	if err != nil {
		return s.fail("add", err)
	}
	return nil
}

// change runs a call that counts once, for as long as ctx allows.
func (s *PermitSemaphore) change(ctx context.Context, n int, call func(publish string) engine.Once) (*conn.Call, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if err := checkCount(n); err != nil {
		return nil, err
	}
	publish, err := s.engine.Conn.PublishCommand(ctx)
	if err != nil {
		return nil, err
	}
	return s.calls.Run(ctx, call(publish))
}

// Available returns how many permits are free. Permits whose lease is over count as free. Available returns
// 0 if the semaphore has not been set. The number may be negative after SetPermits or AddPermits. Like all
// queries, Available asks the master.
func (s *PermitSemaphore) Available(ctx context.Context) (int, error) {
	available, _, err := s.state(ctx)
	return available, err
}

// Acquired returns how many permits are taken.
func (s *PermitSemaphore) Acquired(ctx context.Context) (int, error) {
	_, acquired, err := s.state(ctx)
	return acquired, err
}

// Permits returns how many permits there are in all.
func (s *PermitSemaphore) Permits(ctx context.Context) (int, error) {
	available, acquired, err := s.state(ctx)
	return available + acquired, err
}

func (s *PermitSemaphore) state(ctx context.Context) (available, acquired int, err error) {
	s = engine.Made(s)
	call := &conn.Call{Script: stateScript, Keys: []string{s.at.Available, s.at.Taken}}
	if err := s.run(ctx, call); err != nil {
		return 0, 0, s.fail("query", err)
	}
	available, acquired = stateIn(call)
	return available, acquired, nil
}

func (s *PermitSemaphore) run(ctx context.Context, call *conn.Call) error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.engine.Conn.Run(ctx, call)
}

func (s *PermitSemaphore) fail(op string, err error) error {
	return errs.Call(op, permitsKind, s.Name(), err)
}

// foreign adds to err what is stored at the semaphore's key, if that is not a number.
func (s *PermitSemaphore) foreign(ctx context.Context, err error) error {
	s = engine.Made(s)
	return s.engine.Foreign(ctx, engine.Number, s.at.Available, err)
}

func (s *PermitSemaphore) usable() error {
	s = engine.Made(s)
	return engine.Usable(s.engine, s.err)
}
