// The lease of a MultiLock.

package multilock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/lease"
)

// Lease is one acquisition of all locks of a MultiLock. A Lease ends when the program releases it, or when
// the first of its locks ends for another reason, for example because that lock is lost. In the second
// case the other locks stay held until the program releases the Lease.
//
// If Lock or TryLock fails, it returns a nil Lease. A nil Lease counts as a lease that has ended, in the
// same way as a nil lease.Lease.
type Lease struct {
	leases  []*lease.Lease // in the order in which the locks were given
	alive   context.Context
	account *account
	counted atomic.Bool // the account has counted its end
	done    chan struct{}
	told    sync.Once // closes done
}

// none is the lease that a failed Lock returns. A nil or zero Lease does what its methods do.
var none *lease.Lease

func (l *Lease) absent() bool { return l == nil || l.account == nil }

// begin makes the Lease of the locks that were taken, which are in the order of m.members. If outer
// was re-entered, the Lease joins its hold.
func (m *MultiLock) begin(taken []*lease.Lease, outer *Lease, told *telemetry.Telemetry) *Lease {
	l := &Lease{leases: make([]*lease.Lease, len(taken)), done: make(chan struct{})}
	for i, one := range taken {
		l.leases[m.members[i].given] = one
	}
	if outer == nil || !outer.account.add() {
		l.account = newAccount(m, told)
	} else {
		l.account = outer.account
	}
	l.alive = l.Context(context.Background())
	context.AfterFunc(l.alive, l.over)
	return l
}

// tell closes done. If one of the locks has ended, tell first waits until the contexts of that lock
// are cancelled: those of the whole end with them.
func (l *Lease) tell() {
	for _, one := range l.leases {
		if one.Err() != nil {
			<-one.Done()
			break
		}
	}
	l.told.Do(func() { close(l.done) })
}

// Context returns a context for the work that the locks protect. The returned context is derived from
// parent. The returned context is also cancelled when the first of the locks ends, and its cause then says
// why that lock ended. If a program calls Lock of the MultiLock with the returned context, Lock re-enters
// all locks. If a program calls Lock of one of the locks with the returned context, Lock re-enters that
// lock.
func (l *Lease) Context(parent context.Context) context.Context {
	if l.absent() {
		return none.Context(parent)
	}
	for _, one := range l.leases {
		parent = one.Context(parent)
	}
	return hold.CarryWhole(parent, l.account.identity, l)
}

// Done returns a channel that is closed when the Lease has ended, for any reason. The contexts of the
// Lease are cancelled before the channel is closed.
func (l *Lease) Done() <-chan struct{} {
	if l.absent() {
		return none.Done()
	}
	return l.done
}

// Err returns nil while the Lease lasts. After that, Err returns an error that says why the first of the
// locks ended. The error matches ErrReleased, ErrLost, ErrExpired, ErrMaxHold, ErrSuperseded or ErrClosed.
func (l *Lease) Err() error {
	if l.absent() {
		return none.Err()
	}
	if l.alive.Err() == nil {
		return nil
	}
	return context.Cause(l.alive)
}

// Name returns the names of all locks, separated by commas, in the order in which the MultiLock takes the
// locks.
func (l *Lease) Name() string {
	if l.absent() {
		return none.Name()
	}
	return l.account.name
}

// has reports whether one of the locks is held by that owner.
func (l *Lease) has(owner lease.Owner) bool {
	return slices.ContainsFunc(l.leases, func(one *lease.Lease) bool { return one.Owner() == owner })
}

// Deadline returns when, on this process's clock, the Lease ends if none of its locks is renewed before.
// It is the earliest of the deadlines of the locks.
func (l *Lease) Deadline() time.Time {
	if l.absent() {
		return none.Deadline()
	}
	earliest := l.leases[0].Deadline()
	for _, one := range l.leases[1:] {
		if d := one.Deadline(); d.Before(earliest) {
			earliest = d
		}
	}
	return earliest
}

// Tokens returns the fencing token of each lock, in the order in which the program gave the locks to
// NewMultiLock.
func (l *Lease) Tokens() []int64 {
	if l.absent() {
		return nil
	}
	tokens := make([]int64, len(l.leases))
	for i, one := range l.leases {
		tokens[i] = one.Token()
	}
	return tokens
}

// Release releases all locks at the same time. If the release of one lock fails, Release releases the
// other locks nevertheless. The returned error joins the errors of the locks that could not be released.
// Each of these errors is an error that lease.Lease.Release returns.
func (l *Lease) Release(ctx context.Context) error {
	if l.absent() {
		return none.Release(ctx)
	}
	ctx, span := l.account.told.Release(ctx, ofMulti, l.account.name)
	last := l.Err() == nil && l.count()
	err := l.releaseAll(ctx)
	l.tell()
	held := telemetry.StillHeld
	if last {
		held = l.account.close(err)
	}
	span.End(telemetry.OutcomeOf(err, telemetry.OutcomeReleased), held, err)
	return err
}

func (l *Lease) releaseAll(ctx context.Context) error {
	var failed []error
	for _, done := range startRelease(ctx, l.leases) {
		if err := <-done; err != nil {
			failed = append(failed, err)
		}
	}
	if failed == nil {
		return nil
	}
	return errs.Wrap(fmt.Sprintf("release all of %d", len(l.leases)), errs.InOneLine(failed))
}
