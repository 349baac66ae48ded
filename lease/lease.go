// What a user holds.

package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Lease is one acquisition of something. It is valid until it is released or lost. Its methods may
// be called from any goroutine.
//
// A nil Lease, which a Lock that failed returns, counts as one that has ended: its methods fail
// with ErrBadArgument, its contexts are cancelled, its token is 0.
type Lease struct {
	hold *hold

	length time.Duration
	token  int64

	// Guarded by hold.mu, except fixed.
	next  *Lease // the next of the hold's leases that have not ended
	rare  *rare  // what most leases never have, or nil
	ended end
	fixed bool
}

// rare is what a lease has besides its length, if that was asked for. It stands apart because a
// process may hold very many leases.
type rare struct {
	deadline time.Time // of a fixed lease: its own end, which may be before the hold's
	maxHold  time.Time // when MaxHold ends it; zero: never
	done     chan struct{}
	children map[*child]struct{}
	extended bool // a fixed lease ends later than was agreed first
	telling  bool // it has ended, and its contexts are about to be cancelled; done is closed after that
}

// rarely returns l.rare for writing. The caller holds the mutex.
func (l *Lease) rarely() *rare {
	if l.rare == nil {
		l.rare = new(rare)
	}
	return l.rare
}

// Name returns the name of what is held, as the program gave it.
func (l *Lease) Name() string {
	if l.absent() {
		return ""
	}
	return l.hold.resource.Name()
}

// Token returns the fencing token of the hold: a number greater than that of every earlier hold of
// the same name. With it the protected resource can refuse writes of holders that have been
// overtaken. A lease and those that re-enter it share the token.
func (l *Lease) Token() int64 {
	if l == nil {
		return 0
	}
	return l.token
}

// Owner returns the id under which the thing is held. Leases that were passed on within a process
// share one Owner: see Cohort.
func (l *Lease) Owner() Owner {
	if l.absent() {
		return Owner{}
	}
	return l.hold.owner()
}

// Done returns a channel that is closed when the lease has ended, in whatever way, and its contexts
// are cancelled.
func (l *Lease) Done() <-chan struct{} {
	if l.absent() {
		done := make(chan struct{})
		close(done)
		return done
	}
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	r := l.rarely()
	if r.done == nil {
		r.done = make(chan struct{})
		if l.ended != notYet && !r.telling {
			close(r.done)
		}
	}
	return r.done
}

// Err returns nil while the lease lasts. After that it returns why the lease ended: an error that
// matches ErrReleased, ErrLost, ErrExpired, ErrMaxHold or ErrClosed. Its text says after how long
// that was, and for a loss why: "lease lost after 41s: Redis no longer has it ...".
func (l *Lease) Err() error {
	if l.absent() {
		return noLease("lease")
	}
	ended := l.why()
	if ended == nil {
		return nil
	}
	return l.error(ended)
}

// Deadline returns when the lease ends if it is not renewed or extended before then. It is the
// local instant by which the holder is told, somewhat earlier than the end in Redis.
func (l *Lease) Deadline() time.Time {
	if l.absent() {
		return time.Time{}
	}
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	return l.end()
}

// end is Deadline for a caller that holds the mutex.
func (l *Lease) end() time.Time {
	end := l.hold.deadline
	if l.rare == nil {
		return end
	}
	if l.fixed {
		end = earlier(end, l.rare.deadline)
	}
	return earlier(end, l.rare.maxHold)
}

// Extend makes the lease last at least d from now, whether it is fixed or renewed. It never
// shortens the lease. If the lease has ended, the error matches the reason why. It matches ErrLost
// if Redis no longer has the hold, ErrNotReplicated if too few replicas acknowledge the new end,
// ErrBadArgument if d is shorter than MinLease, or ctx's error if ctx ends first. If the call fails and the lease has not ended, the lease lasts as long as it did
// before.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	if l.absent() {
		return noLease("extend")
	}
	if d < MinLease {
		return l.hold.error("extend", errs.BadArgument)
	}
	if err := l.extend(ctx, d); err != nil {
		return l.hold.error("extend", err)
	}
	return nil
}

func (l *Lease) extend(ctx context.Context, d time.Duration) error {
	h := l.hold
	if ended := l.why(); ended != nil {
		return ended
	}
	call := h.prolonging(h.resource.Renew(h.owner(), d))
	err := h.renewedBy(ctx, call)
	if ended := l.why(); ended != nil && errors.Is(err, errs.Lost) {
		return ended // which is ErrReleased if a Release was faster
	}
	if err != nil {
		return err
	}
	if call.Short() {
		return call.Shortage()
	}
	end := endOf(call, ttlOf(call))
	h.mu.Lock()
	if ended := l.because(); ended != nil {
		h.mu.Unlock()
		h.prolongedTooLate(end)
		return ended
	}
	h.prolonged(end)
	if l.fixed {
		own := endOf(call, d)
		l.rare.extended = l.rare.extended || own.After(l.rare.deadline)
		l.rare.deadline = later(l.rare.deadline, own)
	}
	h.reschedule()
	return nil
}

// Release ends the lease. If that was the last lease of its hold, the thing is free for others when
// Release returns nil, or has been passed on to a waiter: see Cohort.
//
// Release goes on when ctx is cancelled, within a limit of its own (5 s, and no longer than the
// lease), so a deferred Release is always right. If the lease was released before, Release does
// nothing, and the error matches ErrReleased. If the lease was lost, the error matches ErrLost,
// whoever holds the thing now, and also ErrExpired if it was a fixed lease that ended as agreed. If
// MaxHold or Close ended the lease, the error matches ErrMaxHold or ErrClosed. If Redis cannot be
// reached, Release returns an error and goes on trying in the background, and the thing is free
// when the lease is over at the latest.
func (l *Lease) Release(ctx context.Context) error {
	if l.absent() {
		return noLease("release")
	}
	h := l.hold
	if h.engine.Begin() == nil {
		defer h.engine.Done()
	}
	_, span := h.engine.Telemetry.Release(ctx, h.resource.Kind(), h.resource.Name())
	held, err := l.release()
	outcome := telemetry.OutcomeOf(err, telemetry.OutcomeReleased)
	if outcome == telemetry.OutcomeLost || outcome == telemetry.OutcomeExpired {
		span.Lost(h.lossTold())
	}
	span.End(outcome, held, err)
	return err
}

// why returns the error that says why the lease ended, or nil while it lasts.
func (l *Lease) why() error {
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	return l.because()
}

// error returns the error that tells how the lease ended.
func (l *Lease) error(ended error) error { return l.hold.error("lease on", ended) }

// error adds to err the operation, the resource and the owner.
func (h *hold) error(op string, err error) error {
	return opError(op, h.resource, fmt.Errorf("owner %s: %w", h.owner().Short(), err))
}

// earlier returns the earlier of two times. A zero time does not count.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
