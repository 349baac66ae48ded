// One lease on a hold, and what its methods do.

package hold

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Lease is one acquisition. Users know it as lease.Lease, which says what each method promises.
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

// rare has the fields that few leases need. It is separate because a process may hold very many
// leases.
type rare struct {
	deadline time.Time     // of a fixed lease: its own end, which may be before the hold's
	maxHold  time.Time     // when MaxHold ends it; zero: never
	grace    time.Duration // how much sooner than the hold it ends
	replicas int           // how many must acknowledge a call that prolongs it
	done     chan struct{}
	asked    chan struct{} // closed when somebody wants what is held; nil: nobody has called Asked
	children map[*child]struct{}
	noted    bool // it has a note: see Note
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

// Name is Name of lease.Lease.
func (l *Lease) Name() string {
	if l.absent() {
		return ""
	}
	return l.hold.resource.Name()
}

// Token is Token of lease.Lease.
func (l *Lease) Token() int64 {
	if l == nil {
		return 0
	}
	return l.token
}

// Owner is Owner of lease.Lease.
func (l *Lease) Owner() Owner {
	if l.absent() {
		return Owner{}
	}
	return l.hold.owner()
}

// HoldCount is HoldCount of lease.Lease.
func (l *Lease) HoldCount() int {
	if l.absent() {
		return 0
	}
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	if l.ended != notYet {
		return 0
	}
	return int(l.hold.count)
}

// Done is Done of lease.Lease.
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

// Err is Err of lease.Lease.
func (l *Lease) Err() error {
	if l.absent() {
		return noLease("lease")
	}
	ended := l.why()
	if ended == nil {
		l.hold.endOver()
		ended = l.why()
	}
	return l.error(ended)
}

// Deadline is Deadline of lease.Lease.
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
	if l.rare == nil {
		return l.hold.deadline
	}
	end := l.hold.deadline.Add(-l.rare.grace)
	if l.fixed {
		end = earlier(end, l.rare.deadline)
	}
	return earlier(end, l.rare.maxHold)
}

// Extend is Extend of lease.Lease.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	if l.absent() {
		return noLease("extend")
	}
	return l.hold.error("extend", l.extend(ctx, d))
}

func (l *Lease) extend(ctx context.Context, d time.Duration) error {
	if d < MinLease {
		return errs.BadArgument
	}
	grace := l.Grace()
	d = min(d, math.MaxInt64-grace) + grace
	return l.lastFor(ctx, d, func(call *conn.Call) {
		if l.fixed {
			own := endAt(call.Sent, d).Add(-grace)
			l.rare.extended = l.rare.extended || own.After(l.rare.deadline)
			l.rare.deadline = later(l.rare.deadline, own)
		}
	})
}

// Grace returns how much sooner than its hold the lease ends.
func (l *Lease) Grace() time.Duration {
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	return l.grace()
}

// grace is Grace for a caller that holds the mutex.
func (l *Lease) grace() time.Duration {
	if l.rare == nil {
		return 0
	}
	return l.rare.grace
}

// Release is Release of lease.Lease.
func (l *Lease) Release(ctx context.Context) error {
	if l.absent() {
		return noLease("release")
	}
	return l.traced(ctx, false)
}

// traced is release with a span.
func (l *Lease) traced(ctx context.Context, unused bool) error {
	h := l.hold
	if h.engine.Begin() == nil {
		defer h.engine.Done()
	}
	_, span := h.engine.Telemetry.Release(ctx, h.kind(), h.resource.Name())
	held, err := l.release(unused)
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

// error returns the error that says how the lease ended, or nil if ended is nil.
func (l *Lease) error(ended error) error { return l.hold.error("lease on", ended) }

// error adds to err the operation, the resource and the owner. It returns nil if err is nil.
func (h *hold) error(op string, err error) error {
	if err == nil {
		return nil
	}
	return OpError(op, h.resource, fmt.Errorf("owner %s: %w", h.owner().Short(), err))
}

// earlier returns the earlier of two times. A zero time does not count.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
