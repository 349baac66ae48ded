// Why a lease ended without its release, in words.

package hold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// loss is how a hold ended without being released.
type loss struct {
	how    end
	reason string // for metrics and the log
	why    string // for people; "" if how says it all
	also   error  // what else an error of this loss matches, or nil
}

var (
	notThere = loss{how: byLoss, reason: telemetry.LostServer,
		why: "Redis no longer has it (released by force, deleted, or failed over)"}
	overwritten = loss{how: byLoss, reason: telemetry.LostServer,
		why: "Redis no longer has it", also: errs.WrongType}
	closedUnder = loss{how: byClose, reason: telemetry.LostClosed}
	overtaken   = loss{how: bySuperseded, reason: telemetry.LostSuperseded}
	retired     = loss{how: byGrace, reason: telemetry.LostClosed, why: "the whole that it was a part of has ended"}
)

// Losing is a Resource whose hold is given up in one way by its holder, and in another way after a
// loss.
type Losing interface {
	Resource
	// AfterLoss returns the Resource by whose Release it is then given up.
	AfterLoss() Resource
}

// givenUp returns the Resource by whose Release the hold is given up.
func (h *hold) givenUp() Resource {
	r, ok := h.resource.(Losing)
	if !ok {
		return h.resource
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if how := h.lost(); how == byLoss || how == byGrace {
		return r.AfterLoss()
	}
	return h.resource
}

// goneBy reports whether the answer to a call about a hold says that the hold was lost, and returns how:
// Redis does not have it (held), or has a value of another type at its key, which is nobody's hold.
func goneBy(err error, held bool) (l loss, gone bool) {
	if errors.Is(err, errs.WrongType) {
		return overwritten, true
	}
	return notThere, err == nil && !held
}

// seldom has the fields that few holds need. It is separate because a process may have very many
// holds. It is guarded by the hold's mutex.
type seldom struct {
	changed chan struct{} // closed when the count can be changed again; nil if nobody waits for that

	failure string        // why the last renewal failed; "" if it did not
	failing time.Duration // when the first renewal of those that failed was due, by the Client's age

	prolongs int64 // the not-after of requests that prolong it and were not heard, in microseconds of the server's clock; 0: none

	stays time.Duration // until when it stays in Redis after its last lease, by the Client's age; 0: it does not

	yields time.Time // until when it may stay in Redis once it has given way; zero: as long as its lease

	life context.Context // ends with the hold; nil: nothing listens for it
	die  func()          // ends life

	again bool          // a doubt came while a renewal was under way: Redis is to be asked again
	vouch time.Duration // by when Redis must say that a suspect hold is there, by the Client's age
	cut   bool          // another client makes its time to live shorter, and the log has said so

	lost  loss          // how the hold was lost; lost.how is notYet if it was not
	at    time.Time     // when it was lost
	held  time.Duration // how long it had been held
	kept  []*Lease      // of the leases that were its last, and ended though Redis may still have it, those that are not released
	freed bool          // a Release has given it up in Redis all the same
}

// lost returns how the hold has ended, unless it was released or goes on: then notYet. The caller
// holds the mutex.
func (h *hold) lost() end {
	if h.seldom == nil {
		return notYet
	}
	return h.seldom.lost.how
}

// seldomToWrite returns h.seldom for writing. The caller holds the mutex.
func (h *hold) seldomToWrite() *seldom {
	if h.seldom == nil {
		h.seldom = new(seldom)
	}
	return h.seldom
}

// lose marks the hold as one that has ended, and how. The caller holds the mutex.
func (h *hold) lose(l loss, now time.Time) {
	s := h.seldomToWrite()
	h.gone = true
	s.lost, s.at, s.held = l, now, h.engine.AgeAt(now)-h.granted
}

// stoodStill is the delay that shows that the process was suspended: if a hold's end is noticed
// that long after its deadline. The scheduler alone is late by far less.
const stoodStill = 250 * time.Millisecond

// silent returns the loss of a hold whose deadline has come. The caller holds the mutex.
func (h *hold) silent(now time.Time) loss {
	l := loss{how: byLoss, reason: telemetry.LostDeadline}
	if late := now.Sub(h.deadline); late >= stoodStill {
		l.why = fmt.Sprintf("this process stood still, and found out %v after its deadline", round(late))
		return l
	}
	since, last := h.renewAt, ""
	if h.seldom != nil && h.seldom.failure != "" {
		since, last = h.seldom.failing, " (last failure: "+h.seldom.failure+")"
	} else if h.renewing {
		last = " (it was sent, and not answered)"
	}
	l.why = fmt.Sprintf("no renewal got through for %v%s", round(h.engine.AgeAt(now)-since), last)
	return l
}

// slept returns the loss of a hold that is over by the wall clock, and for which Redis did not
// vouch. The caller holds the mutex.
func (h *hold) slept() loss {
	how := byLoss
	if h.needs().grace > 0 {
		how = byGrace
	}
	return loss{how: how, reason: telemetry.LostDeadline, why: "by the wall clock it is over" +
		" (this machine slept?), and Redis could not be asked (last failure: " + h.seldom.failure + ")"}
}

// because returns the error for that end. The caller holds the mutex.
func (h *hold) because(how end) error {
	s := h.seldom
	if how == notYet || s == nil || s.lost.how != how {
		return how.err()
	}
	return s.lost.error(s.held)
}

// error returns the error of a hold that was lost in this way, after it had been held for that
// long.
func (l loss) error(held time.Duration) error {
	err := l.how.err()
	switch {
	case l.also != nil:
		return fmt.Errorf("%w after %v: %s: %w", err, round(held), l.why, l.also)
	case l.why != "":
		return fmt.Errorf("%w after %v: %s", err, round(held), l.why)
	default:
		return fmt.Errorf("%w (held for %v)", err, round(held))
	}
}

// because returns the error that says why the lease ended, or nil while it lasts. The caller holds
// the mutex.
func (l *Lease) because() error {
	if l.ended == byExpiry && !l.rare.extended {
		return fmt.Errorf("%w after %v", errs.Expired, l.length-l.rare.grace)
	}
	return l.hold.because(l.ended)
}

// lossTold returns what telemetry records of the hold's loss, or nil if it was not lost.
func (h *hold) lossTold() *telemetry.Loss {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seldom
	if s == nil || s.lost.how == notYet {
		return nil
	}
	return &telemetry.Loss{Reason: s.lost.reason, At: s.at, Held: s.held, Why: errs.Plain(s.lost.error(s.held))}
}

// round returns d as people read it: to the millisecond if it is less than 10 s, else to a tenth of
// a second.
func round(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}
