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

// Lease is one acquisition of something. It is valid until it is released or
// lost; its methods may be called from any goroutine.
//
// A nil Lease, which is what a Lock that failed returns, is one that has ended: its
// methods fail with ErrBadArgument, its context is cancelled, its token is 0.
type Lease struct {
	hold *hold

	length time.Duration
	token  int64

	// Guarded by hold.mu, but for fixed.
	next  *Lease // the other leases on the hold that have not ended
	rare  *rare  // what most leases never have; nil without
	ended end
	fixed bool
}

// rare is what a lease has beside its length if it was asked for. It stands apart
// because a process may hold very many leases.
type rare struct {
	deadline time.Time // of a fixed lease: its own end, which may come before the hold's
	maxHold  time.Time // when MaxHold ends it, or zero
	done     chan struct{}
	children map[*child]struct{}
	extended bool // a fixed lease's end is later than was agreed first
	telling  bool // it has ended, and its contexts are about to be cancelled: done is closed after
}

// rarely returns the lease's rare things for writing, under the mutex.
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

// Token returns the fencing token of the hold: a number greater than that of
// every earlier hold of the same name, for the protected resource to refuse
// writes of holders that have been overtaken. A lease and those that re-enter it
// share it.
func (l *Lease) Token() int64 {
	if l == nil {
		return 0
	}
	return l.token
}

// Owner returns the id under which the thing is held. Leases that were passed on
// within a process share it: see Cohort.
func (l *Lease) Owner() Owner {
	if l.absent() {
		return Owner{}
	}
	return l.hold.owner()
}

// Done returns a channel that is closed when the lease has ended, however it
// ended, and its contexts are cancelled.
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

// Err returns nil while the lease lasts, and then why it ended: an error that
// matches ErrReleased, ErrLost, ErrExpired, ErrMaxHold or ErrClosed. Its text says after
// how long, and of a loss why: "lease lost after 41s: Redis no longer has it ...".
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

// Deadline returns when the lease ends if it is not renewed or extended before:
// the local instant by which its holder is told, somewhat ahead of the server.
func (l *Lease) Deadline() time.Time {
	if l.absent() {
		return time.Time{}
	}
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	return l.end()
}

// end is Deadline under the mutex.
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

// Extend makes the lease last at least d from now, whether it is fixed or
// renewed; it never shortens it. It returns an error that matches why the lease
// ended if it has, ErrLost if Redis no longer has the hold, ErrBadArgument if d
// is shorter than MinLease, or ctx's error; then the lease lasts as long as it
// did.
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

// Release ends the lease. With the last lease of a hold the thing is free for
// others when it returns nil, or passed on to one who waits: see Cohort.
//
// It goes on when ctx is cancelled, within a limit of its own (5 s, and no longer
// than the lease), so that a deferred Release is always right. It returns
// ErrReleased, and does nothing, if the lease was released before; ErrLost if it
// was lost, whoever holds the thing now, and ErrExpired too if it was a fixed lease
// that ended as agreed; ErrMaxHold or ErrClosed if that ended it. If Redis cannot be reached it returns an error, goes on trying in the
// background, and the thing is free at the end of the lease at the latest.
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

// why returns the error that says why the lease ended, or nil.
func (l *Lease) why() error {
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	return l.because()
}

// error is what is told of a lease that ended so.
func (l *Lease) error(ended error) error { return l.hold.error("lease on", ended) }

// error adds to err what was being done to what, and for whom.
func (h *hold) error(op string, err error) error {
	return opError(op, h.resource, fmt.Errorf("owner %s: %w", h.owner().Short(), err))
}

// earlier returns the earlier of two times, of which the zero one does not count.
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
