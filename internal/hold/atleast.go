// AtLeast: a hold that stays in Redis for a while after its last lease was released.

package hold

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Keeping is a Resource whose hold can be left in Redis to run out.
type Keeping interface {
	Resource
	// Keep sets its time to live to left, which may be less than before. The replies are those of
	// Recount.
	Keep(owner Owner, left time.Duration) *conn.Call
}

// AtLeast is AtLeast of lease.Lease.
func (l *Lease) AtLeast(ctx context.Context, d time.Duration) error {
	if l.absent() {
		return noLease("keep")
	}
	return l.hold.error("keep", l.atLeast(ctx, d))
}

func (l *Lease) atLeast(ctx context.Context, d time.Duration) error {
	h := l.hold
	if _, ok := h.resource.(Keeping); !ok {
		return fmt.Errorf("this kind cannot stay held after its release: %w", errs.BadArgument)
	}
	if d < 0 {
		return fmt.Errorf("for at least %v: %w", d, errs.BadArgument)
	}
	age := h.engine.Age()
	stays := age + min(d, math.MaxInt64-age)
	note := func(*conn.Call) {
		s := h.seldomToWrite()
		s.stays = max(s.stays, stays)
	}
	h.mu.Lock()
	lasts := l.ended == notYet && h.engine.AgeAt(h.deadline) >= stays
	if lasts {
		note(nil)
	}
	h.mu.Unlock()
	if lasts {
		return nil
	}
	return l.lastFor(ctx, roundUp(d), note) // so the hold stays for that long even if the process dies at once
}

// roundUp returns d rounded up to whole milliseconds, in which Redis counts.
func roundUp(d time.Duration) time.Duration {
	return (min(d, math.MaxInt64-time.Millisecond) + time.Millisecond - 1).Truncate(time.Millisecond)
}

// staying returns for how long the hold would stay in Redis if it were released now; 0 if not at
// all.
func (h *hold) staying() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stillStays()
}

// stillStays is staying for a caller that holds the mutex.
func (h *hold) stillStays() time.Duration {
	if h.seldom == nil {
		return 0
	}
	return max(h.seldom.stays-h.engine.Age(), 0)
}

// leaveBehind is the last release of a hold that stays for that long. Nobody renews it from here on.
// If the request fails, the hold stays until its lease is over, which is no sooner.
func (h *hold) leaveBehind(ctx context.Context, left time.Duration) error {
	call := h.keep(left)
	err := h.engine.Conn.Run(ctx, call)
	if l, gone := goneBy(err, call.Status() == conn.Done); gone {
		return h.foundGone(l)
	}
	if err != nil {
		h.settle(h.lateUntil())
		return err
	}
	h.mu.Lock()
	until := max(h.lateUntil(), h.seldom.prolongs)
	h.mu.Unlock()
	if until != 0 && call.ServerTime() <= until {
		h.settle(until) // a late request could make it last longer
	}
	return nil
}

// noteUnheard notes until when a request that prolongs the hold may take effect, if its answer was not
// heard: a hold that stays after its release, or that has given way, would stay for longer.
func (h *hold) noteUnheard(call *conn.Call) {
	notAfter, unheard := call.Outstanding()
	if !unheard {
		return
	}
	h.mu.Lock()
	s := h.seldomToWrite()
	s.prolongs = max(s.prolongs, notAfter)
	yields := h.yields()
	h.mu.Unlock()
	if yields {
		h.engine.Background(h.cutOn) // it may have been sent long after that
	}
}

// keep returns the call that makes the hold end after left. The time counts from when Redis runs
// the call, so a delay on the way makes the hold end later, never sooner.
func (h *hold) keep(left time.Duration) *conn.Call {
	call := h.resource.(Keeping).Keep(h.owner(), roundUp(left))
	call.Cleanup = true
	return call
}
