// How all locks are taken, one after another, or none.

package multilock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/lease"
)

// The bounds of the pause before Lock begins again.
const (
	minPause = 8 * time.Millisecond
	maxPause = 250 * time.Millisecond
)

// acquiring is the method by which each lock is asked for: Lock or TryLock.
type acquiring = func(lease.Locker, context.Context) (*lease.Lease, error)

// acquire takes all locks, and reports that to telemetry as one acquisition.
func (m *MultiLock) acquire(ctx context.Context, op string, lock acquiring, wait bool) (*Lease, error) {
	if err := m.usable(); err != nil {
		return nil, errs.Wrap(op+" multilock", err)
	}
	outer := m.outer(ctx)
	a := telemetry.Acquired{Reentrant: outer != nil, Waited: telemetry.ToldByParts}
	ctx, whole := telemetry.Together(ctx, kindMulti, m.name)
	var taken []*lease.Lease
	var err error
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		a.Attempts++
		taken, err = m.take(ctx, op, lock)
		if !wait || !errors.Is(err, errAgain) {
			break
		}
		if end := engine.Sleep(ctx, pause); end != nil {
			err = m.failed(op, errs.Ended(ctx, fmt.Errorf("%w: %w", errs.Busy, end)))
			break
		}
	}
	a.Outcome, a.Err = telemetry.OutcomeOf(err, telemetry.OutcomeAcquired), err
	whole.End(a)
	if err != nil {
		return nil, err
	}
	return m.begin(taken, outer, whole.Telemetry()), nil
}

// errAgain says that a lock was lost while Lock waited for another.
var errAgain = fmt.Errorf("lost while another was waited for: %w", errs.Lost)

// take takes every lock, or none.
func (m *MultiLock) take(ctx context.Context, op string, lock acquiring) ([]*lease.Lease, error) {
	taken := make([]*lease.Lease, 0, len(m.members))
	// The wait for a lock also ends when a lock that was taken before is lost. It does not carry their
	// leases: what has not all of its locks is no work yet, that a Shutdown would wait for.
	held, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, one := range m.members {
		l, err := lock(one.locker, held)
		if err == nil {
			taken = append(taken, l)
			unwatch := context.AfterFunc(l.Context(held), func() { cancel(l.Err()) })
			defer unwatch()
			continue
		}
		switch over, end := ended(taken), ctx.Err(); {
		case over != nil && end == nil:
			err = over
		case over != nil && !errors.Is(err, end): // it says why held ended, and ctx has ended too
			err = fmt.Errorf("%w: %w", err, end)
		}
		giveBack(ctx, taken)
		return nil, m.failed(op, err)
	}
	if over := ended(taken); over != nil {
		giveBack(ctx, taken)
		return nil, m.failed(op, over)
	}
	return taken, nil
}

// failed adds to err what was being done to all of the locks.
func (m *MultiLock) failed(op string, err error) error {
	return errs.Wrap(fmt.Sprintf("%s all of %d", op, len(m.members)), err)
}

// ended returns why one of the leases has ended; nil if none has.
func ended(taken []*lease.Lease) error {
	for _, l := range taken {
		switch err := l.Err(); {
		case errors.Is(err, errs.Lost):
			return fmt.Errorf("%w: %w", errAgain, err)
		case err != nil:
			return err
		}
	}
	return nil
}

// giveBack releases what was taken, and waits for that as long as ctx allows.
func giveBack(ctx context.Context, taken []*lease.Lease) {
	for _, done := range startRelease(ctx, taken) {
		select {
		case <-done: //nolint:errcheck // the attempt has an error of its own
		case <-ctx.Done():
		}
	}
}

// startRelease releases the leases, all at the same time, so that a server that does not answer
// does not delay the others.
func startRelease(ctx context.Context, leases []*lease.Lease) []<-chan error {
	released := make([]<-chan error, len(leases))
	for i, l := range leases {
		released[i] = (*hold.Lease)(l).GiveBack(ctx)
	}
	return released
}
