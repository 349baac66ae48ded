// Releasing.

package lease

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// releaseLimit is how long Release tries before it leaves the rest to the
// background.
const releaseLimit = 5 * time.Second

// release is Release, and tells how long the hold has lasted if it is over.
func (l *Lease) release(ctx context.Context) (held time.Duration, err error) {
	h := l.hold
	h.mu.Lock()
	if l.ended != nil {
		ended, left := l.ended, h.gone && h.lost != nil && !h.freed && time.Now().Before(h.deadline)
		h.freed = h.freed || left
		h.mu.Unlock()
		if left && !errors.Is(ended, errs.Closed) {
			h.settle(h.lateUntil) // its own end came before the key's
		}
		return telemetry.StillHeld, h.error("release", ended)
	}
	e := h.finish(l, errs.Released)
	last := h.count == 0 && !h.entering
	entering := h.count == 0 && h.entering
	h.gone = last
	h.mu.Unlock()

	if last {
		h.leave() // nothing is renewed from here on
		h.engine.Telemetry.Active(h.resource.Kind(), -1)
	}
	e.tell()

	held = telemetry.StillHeld
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.releaseTime())
	defer cancel()
	switch {
	case last:
		held = time.Since(h.granted)
		err = h.free(ctx)
	case entering:
		err = h.afterEntry(ctx)
	default:
		err = h.recount(ctx)
	}
	if err != nil {
		return held, h.error("release", err)
	}
	return held, nil
}

// releaseTime is how long a release tries: past the deadline there is nothing
// left to release.
func (h *hold) releaseTime() time.Duration {
	return min(releaseLimit, max(time.Until(h.until()), MinLease))
}

func (h *hold) until() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline
}

// free gives the thing up in Redis.
func (h *hold) free(ctx context.Context) error {
	call := releaseCall(ctx, h.engine, h.resource, h.owner)
	if err := h.engine.Conn.Run(ctx, call); err != nil {
		h.settle(h.lateUntil)
		return err
	}
	if call.ServerTime() <= h.lateUntil {
		h.settle(h.lateUntil) // a late request could take it again
	}
	if call.Status() == Granted {
		return nil
	}
	if _, unheard := call.Outstanding(); unheard {
		return nil // an earlier sending of this call did it
	}
	return errs.Lost
}

// afterEntry is the release of the last lease while a nested acquisition is on
// its way. If that succeeds the hold goes on; if not, the hold ends here.
func (h *hold) afterEntry(ctx context.Context) error {
	if err := h.take(ctx); err != nil {
		return err // the entry, when it fails, releases
	}
	defer h.give()
	h.mu.Lock()
	gone, lost := h.gone, h.lost
	h.mu.Unlock()
	switch {
	case lost != nil:
		return lost
	case !gone:
		return h.writeCount(ctx)
	}
	if err := h.free(ctx); err != nil && !errors.Is(err, errs.Lost) {
		return err
	}
	return nil // also if the entry's own clean-up was first
}

// settle goes on releasing in the background, until a release is answered after
// notAfter.
func (h *hold) settle(notAfter int64) {
	giveUp(h.engine, h.resource, h.owner, notAfter, time.Until(h.until()))
}
