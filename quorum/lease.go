// The lease of a Quorum.

package quorum

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/lease"
)

// Lease is one acquisition of a Quorum. A Lease lasts until the program releases it, or until fewer than a
// majority of the servers hold the lock for it. The Client of each server renews the lock on that server.
// If the lock is lost on one server, the Lease never asks that server again.
//
// If Lock or TryLock fails, it returns a nil Lease. A nil Lease counts as a lease that has ended, in the
// same way as a nil lease.Lease.
type Lease struct {
	hold *majorityHold
	life *life
}

// none is the lease that a failed Lock returns. A nil or zero Lease does what its methods do.
var none *lease.Lease

func (l *Lease) absent() bool { return l == nil || l.hold == nil }

// Name returns the name of the Quorum, as the program gave it to NewQuorum or NewQuorumOf.
func (l *Lease) Name() string {
	if l.absent() {
		return none.Name()
	}
	return l.hold.quorum.name
}

// Token returns the fencing token of the hold, which is the greatest of the servers' tokens. Before Lock
// returned the Lease, this token was stored on a majority of the servers. So every later hold gets a
// greater token.
func (l *Lease) Token() int64 {
	if l.absent() {
		return none.Token()
	}
	return l.hold.token
}

// Tokens returns the tokens of the servers that granted the lock, in the order of the Clients. Token
// returns the greatest of these tokens.
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

// Context returns a context for the work that the lease protects. The returned context is derived from
// parent. The returned context is also cancelled when the lease ends, and its cause then says why:
// ErrLost, ErrExpired, ErrReleased, ErrMaxHold or ErrClosed. If a program calls Lock of the Quorum with
// the returned context, Lock re-enters the hold. The memory of the returned context is freed when parent
// or the lease ends.
func (l *Lease) Context(parent context.Context) context.Context {
	if l.absent() {
		return none.Context(parent)
	}
	work := hold.Under(parent, l.hold.parts())
	return l.life.context(parent, hold.CarryWhole(work, l.hold.quorum.identity, l))
}

// Done returns a channel that is closed when the lease has ended, for any reason.
func (l *Lease) Done() <-chan struct{} {
	if l.absent() {
		return none.Done()
	}
	return l.life.done
}

// Err returns nil while the lease lasts. After that, Err returns an error that says why the lease ended.
// The error matches ErrReleased, ErrLost, ErrExpired, ErrMaxHold or ErrClosed.
func (l *Lease) Err() error {
	if l.absent() {
		return none.Err()
	}
	return l.life.err()
}

// Deadline returns when the lease ends if no Client renews the lock on any server before. This is the
// first instant at which fewer than a majority of the servers hold the lock, by the local deadline that
// the Client of each server has. If fewer than a majority of the servers hold the lock now, Deadline
// returns the zero time.
func (l *Lease) Deadline() time.Time {
	if l.absent() {
		return none.Deadline()
	}
	return l.hold.deadline()
}

// Release ends the lease. When the last lease of a hold is released, Release frees the lock. Release
// returns nil when the lock is free on a majority of the servers, so that another caller can be granted
// the lock. On the other servers, the lock is released in the background.
//
// If ctx is cancelled, Release goes on. Release waits for each server for at most half a second, and after
// that goes on in the background. If the lease was already released, Release does nothing, and the error
// matches ErrReleased. If the lease was lost, the error matches ErrLost. If it was a fixed lease that
// ended as agreed, the error also matches ErrExpired. If MaxHold or Close ended the lease, the error
// matches ErrMaxHold or ErrClosed. If the lock is not free on a majority of the servers, the error has the
// errors of the servers that have not released the lock.
func (l *Lease) Release(ctx context.Context) error {
	if l.absent() {
		return none.Release(ctx)
	}
	ctx, span := l.hold.quorum.telemetry().Release(ctx, l.hold.kind, l.hold.quorum.name)
	held, err := l.hold.release(ctx, l)
	span.End(telemetry.OutcomeOf(err, telemetry.OutcomeReleased), held, err)
	return err
}
