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

// PermitSemaphore is a number of permits. A holder takes permits with a lease. All callers that use the
// same name share the permits. If the process of a holder dies, the permits of this holder are free again
// when its lease is over. If a holder is cut off from Redis, its Lease notifies the holder.
//
// A PermitSemaphore holds no state, so any number of goroutines may use one PermitSemaphore. The state of
// one holder is in the Lease that Acquire returns.
type PermitSemaphore struct {
	engine   *engine.Engine
	name     string
	at       keys.Permits
	calls    engine.Ledger
	settings hold.Settings
	err      error // why it cannot be used
}

// NewPermits returns the PermitSemaphore of the given name. key is the key of the semaphore in Redis.
// settings says how permits are leased. NewPermits does no I/O. If an argument is wrong, every call on the
// semaphore returns the error.
func NewPermits(e *engine.Engine, name, key string, settings hold.Settings) *PermitSemaphore {
	s := &PermitSemaphore{engine: e, name: name, settings: settings}
	if s.err = e.Broken(); s.err == nil {
		s.at, s.err = e.Keys.ForPermits(key)
		s.calls = e.Ledger(s.at.Calls)
	}
	return s
}

// Name returns the name of the semaphore, as the program gave it to Client.PermitSemaphore.
func (s *PermitSemaphore) Name() string { return engine.Made(s).name }

// Acquire waits until n permits are free at the same time, and takes them. Acquire returns one Lease for
// all n permits, which the caller must release. n is from 1 to 1000. The options of the semaphore say
// whether the Lease is renewed or fixed. The Token of the Lease is 0. IDs returns the ids of its permits.
// Acquire never re-enters a Lease that ctx carries, because each Acquire takes other permits.
//
// A call for fewer permits may overtake a call that waits for more permits. Within one process, a call
// that has waited for a second is not overtaken any more.
//
// Acquire waits as long as ctx allows. If ctx ends first, Acquire takes nothing, and the error matches
// ctx's error. The error also matches ErrBusy if too few permits were free. If the semaphore has fewer
// than n permits in all, Acquire returns at once, and the error matches ErrNoPermits. A semaphore that
// nobody has set has no permits. If Redis returns a transient error, Acquire tries again until ctx ends.
// If the error matches ErrWrongType, ErrOutOfMemory, ErrDenied or ErrBadArgument, Acquire returns the
// error at once.
func (s *PermitSemaphore) Acquire(ctx context.Context, n int) (*lease.Lease, error) {
	return s.request(ctx, n, "acquire", false)
}

// TryAcquire is Acquire without the wait. TryAcquire sends one request, and does not subscribe to
// messages. If too few permits are free, the error matches ErrBusy. The error also matches ErrBusy if
// another call in this process wants more permits than this call, and has waited for more than a second.
// If Redis does not answer within 3 s, or before ctx's deadline, the error matches ErrUnavailable.
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

// LeaseFrom returns a lease that ctx carries. If ctx carries a lease on permits of this semaphore, on any
// number of them, LeaseFrom returns that lease and true. If ctx carries several such leases, LeaseFrom
// returns the innermost. The returned lease may have ended. If ctx carries no such lease, ok is false. A
// lease of another Client does not count. LeaseFrom does no I/O.
func (s *PermitSemaphore) LeaseFrom(ctx context.Context) (l *lease.Lease, ok bool) {
	if s.usable() != nil {
		return nil, false
	}
	carried := hold.Carried(ctx, s.engine, &resource{at: s.at})
	return (*lease.Lease)(carried), carried != nil
}

// Locker returns a Locker whose Lock calls Acquire with n, and whose TryLock calls TryAcquire with n. Use
// it for Do, and for any other function that takes a Locker.
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

// TrySetPermits sets the total number of permits to n, if nobody has set the semaphore before. It reports
// whether this call has set the number. If Redis does not answer within 3 s, the error matches
// ErrUnavailable.
//
// If ctx ends before Redis has answered, the error matches ctx's error. If the request was sent but not
// answered, the error also matches ErrUnknown: the request may have set the number, or may still set it
// later. SetPermits and AddPermits return the same errors, but wait for Redis as long as ctx allows.
func (s *PermitSemaphore) TrySetPermits(ctx context.Context, n int) (bool, error) {
	ctx, cancel := engine.Bounded(ctx)
	defer cancel()
	call, err := s.set(ctx, n, 1)
	if err != nil {
		return false, s.fail("set", s.foreign(ctx, err))
	}
	return call.Status() == conn.Done, nil
}

// SetPermits sets the total number of permits to n. If more than n permits are taken, their holders keep
// them. The number of free permits is then negative until holders have given enough permits back.
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

// AddPermits adds delta to the total number of permits. delta may be negative. If it is, the number of
// free permits may become negative too, until holders have given enough permits back.
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

// Available returns how many permits are free. A permit whose lease is over counts as free. The number may
// be negative after SetPermits or AddPermits. If nobody has set the semaphore, Available returns 0.
// Available asks Redis's master, as all queries do.
func (s *PermitSemaphore) Available(ctx context.Context) (int, error) {
	available, _, err := s.state(ctx)
	return available, err
}

// Acquired returns how many permits are taken. A permit whose lease is over does not count as taken.
func (s *PermitSemaphore) Acquired(ctx context.Context) (int, error) {
	_, acquired, err := s.state(ctx)
	return acquired, err
}

// Permits returns the total number of permits: the free permits and the taken permits.
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
