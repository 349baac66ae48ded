// The outcome of an operation, in the few words that spans and metrics use for it.

package telemetry

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// Outcome is how an acquisition, a release or a renewal ended. Its String is the
// value of the attribute holdfast.outcome.
type Outcome uint8

// The zero Outcome is none of these and prints "unknown".
const (
	OutcomeAcquired  Outcome = iota + 1 // acquire: granted
	OutcomeConcluded                    // acquire: nothing was left to grant, since what it is for has been done
	OutcomeBusy                         // acquire: a try found it held
	OutcomeTimeout                      // acquire: it was held until the deadline of the caller's ctx
	OutcomeCancelled                    // acquire: the caller's ctx was cancelled
	OutcomeClosed                       // acquire, release: the Client was closed first
	OutcomeReleased                     // release: released, or one nested lease fewer
	OutcomeRepeated                     // release: this lease was released before; nothing was sent
	OutcomeLost                         // acquire, release: the lease had already ended
	OutcomeExpired                      // release: the fixed lease had ended as agreed; hold: it ended so
	OutcomeRenewed                      // renewal: the server moved the expiry
	OutcomeGone                         // renewal: the server no longer knows the hold
	OutcomeFailed                       // renewal: no usable answer; it is tried again until the local deadline
	OutcomeError                        // acquire, release: anything else that went wrong
)

var outcomeNames = [...]string{
	OutcomeAcquired:  "acquired",
	OutcomeConcluded: "concluded",
	OutcomeBusy:      "busy",
	OutcomeTimeout:   "timeout",
	OutcomeCancelled: "cancelled",
	OutcomeClosed:    "closed",
	OutcomeReleased:  "released",
	OutcomeRepeated:  "repeated",
	OutcomeLost:      "lost",
	OutcomeExpired:   "expired",
	OutcomeRenewed:   "renewed",
	OutcomeGone:      "gone",
	OutcomeFailed:    "failed",
	OutcomeError:     "error",
}

// String returns the lower-case word of o.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) && outcomeNames[o] != "" {
		return outcomeNames[o]
	}
	return "unknown"
}

// failure reports whether an operation failed, as opposed to one that merely answered no.
//
// OpenTelemetry leaves it to the context whether a negative answer is an error. Here, busy
// answers a question. A timeout or a cancellation is the end that the caller set to its own
// wait, and so is a Close. Counted as errors, they would make every contended lock look like an
// outage. A lost lease is a failure even though nothing malfunctioned, because work may have
// run unprotected.
func (o Outcome) failure() bool {
	switch o {
	case OutcomeError, OutcomeLost:
		return true
	default:
		return false
	}
}

// OutcomeOf returns the outcome of an acquisition or a release that ended with err. success is
// the outcome for nil.
//
// If a deadline passes and Redis never said "held", the outcome is not a timeout of the wait
// but an error: otherwise a server that answers no caller would look like contention. A second
// release is not a failure, because a deferred release after an explicit one is good style. An
// acquisition through a lease that was released is a mistake of the caller, and an error. A
// fixed lease that was over before its release ended as agreed.
func OutcomeOf(err error, success Outcome) Outcome {
	switch {
	case err == nil:
		return success
	case errors.Is(err, errs.Expired) && success == OutcomeReleased:
		return OutcomeExpired
	case errors.Is(err, errs.Lost), errors.Is(err, errs.MaxHold), errors.Is(err, errs.Superseded):
		return OutcomeLost
	case errors.Is(err, errs.Released) && success == OutcomeReleased:
		return OutcomeRepeated
	case errors.Is(err, errs.Closed):
		return OutcomeClosed
	case errors.Is(err, context.Canceled):
		return OutcomeCancelled
	case errors.Is(err, errs.Busy):
		return outcomeOfBusy(err)
	default:
		return OutcomeError
	}
}

// outcomeOfBusy returns the outcome of a try, or of a wait, that found another holder.
func outcomeOfBusy(err error) Outcome {
	switch {
	case errors.Is(err, errs.Unavailable):
		return OutcomeError
	case errors.Is(err, context.DeadlineExceeded):
		return OutcomeTimeout
	default:
		return OutcomeBusy
	}
}
