// The lease of a Quorum.

package quorum

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/lease"
)

// Lease is one acquisition of a Quorum. It lasts until it is released, or until fewer than a majority of
// the servers hold it. Each server's Client renews the lease on that server. If the lease is lost on one
// server, that server is not asked again.
//
// A Lock that fails returns a nil Lease. A nil Lease counts as ended, in the same way as a nil
// lease.Lease.
type Lease struct {
	hold *majorityHold
	life *life
}

// none is the lease that a failed Lock returns. A nil or zero Lease does what its methods do.
var none *lease.Lease

func (l *Lease) absent() bool { return l == nil || l.hold == nil }

// Name returns the name of the Quorum.
func (l *Lease) Name() string {
	if l.absent() {
		return none.Name()
	}
	return l.hold.quorum.name
}

// Token returns the fencing token: the greatest of the servers' tokens. This token was stored on a
// majority of the servers, so any majority that grants the next lease gives it a greater token.
func (l *Lease) Token() int64 {
	if l.absent() {
		return none.Token()
	}
	return l.hold.token
}

// Tokens returns the tokens of the servers that granted the lock, in the order of the Clients. The
// greatest of them is what Token returns.
func (l *Lease) Tokens() []int64 {
	if l.absent() {
		return nil
	}
	tokens := make([]int64, len(l.hold.members))
	for i, m := range l.hold.members {
		tokens[i] = m.Token()
	}
	return tokens
}

// Context returns a context for the work that the lease protects. The context is derived from parent,
// and is also cancelled when the lease ends, with a cause that says why (ErrLost, ErrReleased,
// ErrMaxHold or ErrClosed). A Lock of the Quorum with this context re-enters. The context's memory is
// freed when parent or the lease ends.
func (l *Lease) Context(parent context.Context) context.Context {
	if l.absent() {
		return none.Context(parent)
	}
	work := hold.Under(parent, l.hold.parts())
	return l.life.context(parent, hold.CarryWhole(work, l.hold.quorum.identity, l))
}

// Done returns a channel that is closed when the lease has ended for any reason.
func (l *Lease) Done() <-chan struct{} {
	if l.absent() {
		return none.Done()
	}
	return l.life.done
}

// Err returns nil while the lease lasts. When it has ended, Err returns why: an error that matches
// ErrReleased, ErrLost, ErrMaxHold or ErrClosed.
func (l *Lease) Err() error {
	if l.absent() {
		return none.Err()
	}
	return l.life.err()
}

// Deadline returns when the lease ends if no server renews it before. It is the first instant at which
// fewer than a majority of the servers hold the lease, by the local deadline of each server. If fewer
// than a majority hold the lease now, Deadline returns the zero time.
func (l *Lease) Deadline() time.Time {
	if l.absent() {
		return none.Deadline()
	}
	return l.hold.deadline()
}

// Release ends the lease. The release of the hold's last lease frees the lock. Release returns nil when
// the lock is free on a majority of the servers, so that another caller can be granted the lock. The
// lock is released on the other servers in the background.
//
// Release goes on when ctx is cancelled. It waits for each server for at most half a second, and then
// releases on that server in the background. If the lease was released before, Release does nothing and
// returns ErrReleased. If the lease was lost, Release returns ErrLost; if MaxHold or Close ended the
// lease, ErrMaxHold or ErrClosed. Otherwise it returns the errors of the servers on which the lock could
// not be released.
func (l *Lease) Release(ctx context.Context) error {
	if l.absent() {
		return none.Release(ctx)
	}
	ctx, span := l.hold.quorum.telemetry().Release(ctx, l.hold.kind, l.hold.quorum.name)
	held, err := l.hold.release(ctx, l)
	span.End(telemetry.OutcomeOf(err, telemetry.OutcomeReleased), held, err)
	return err
}
