// A call: one run of one script, and what is known of its outcome.

package conn

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// Window is how long after its sending a request may still change something:
// its not-after. A request that a frozen server or a slow network holds back
// for longer does nothing any more.
const Window = time.Second

// Call is one run of one script, with what is known of its outcome. It is used
// by one goroutine and once.
type Call struct {
	Script *Script
	Keys   []string // the first decides the node
	Args   []any    // ARGV[2] and on

	// Until, where set, is the local instant at which the lease ends that the
	// call prolongs: it takes no effect after that, and is then given up with
	// errs.Lost.
	Until time.Time
	// AnyTime has the call take effect at any time up to Until, not only within
	// Window after its sending: for renewals, which are of use until then.
	AnyTime bool
	// Enough, where set, is how many of the keys do where Redis refuses a call
	// with all of them, because their slot is on the move.
	Enough int

	// Replicas is how many replicas must have acknowledged what the call did:
	// see Short.
	Replicas int
	// Cleanup marks a call that undoes or ends something: it goes on while the
	// Client closes, and while no connection can be made because credentials or a
	// certificate are refused.
	Cleanup bool

	// Reply is what the script answered.
	Reply Reply
	// Sent is when the request that was answered was sent.
	Sent time.Time
	// Attempts counts the requests that were sent.
	Attempts int

	small       *Small // that this is part of, if so
	outstanding bool
	notAfter    int64
	replicated  int   // how many replicas have acknowledged
	unwaited    error // why that is not known
}

// over reports whether the call is of no use any more.
func (c *Call) over() bool { return !c.Until.IsZero() && !time.Now().Before(c.Until) }

// deadline returns until when a request of the call that is sent now may
// take effect.
func (c *Call) deadline(now time.Time) time.Time {
	if c.AnyTime {
		return c.Until
	}
	if window := now.Add(Window); c.Until.IsZero() || window.Before(c.Until) {
		return window
	}
	return c.Until
}

// Status returns the first element of the reply.
func (c *Call) Status() int64 { return c.Int(0) }

// ServerTime returns the server's clock in the reply, in microseconds; 0 if the
// script does not tell it.
func (c *Call) ServerTime() int64 { return c.Int(1) }

// Int returns an element of the reply that is a number, or 0 where there is
// none.
func (c *Call) Int(i int) int64 {
	n, _ := c.Reply.Number(i)
	return n
}

// Text returns an element of the reply that is a string, or "" where there is
// none.
func (c *Call) Text(i int) string { return c.Reply.Text(i) }

// Short reports whether what the call did has reached fewer replicas than it
// asked for, as far as is known. It was done on the master all the same.
func (c *Call) Short() bool { return c.replicated < c.Replicas }

// Shortage is the error of a call that is Short: errs.NotReplicated, or that Redis refuses
// to tell how many replicas have it. A master that has become a replica meanwhile does not
// refuse: it cannot tell.
func (c *Call) Shortage() error {
	switch {
	case c.unwaited == nil || !isReply(c.unwaited):
		return fmt.Errorf("%w: got %d, want %d", errs.NotReplicated, c.replicated, c.Replicas)
	case judge(c.unwaited) == again:
		return fmt.Errorf("%w: %w", errs.NotReplicated, c.unwaited)
	default:
		return typed(c.unwaited, nil)
	}
}

// Outstanding reports whether a request of the call that was never answered may
// have run or may still run, and until when on the server's clock, in
// microseconds.
func (c *Call) Outstanding() (notAfter int64, ok bool) { return c.notAfter, c.outstanding }

// absorb takes in what became of a request that was answered or that failed.
func (c *Call) absorb(r *request) {
	switch {
	case r.err == nil:
		c.Attempts++
		c.Reply, c.Sent = r.reply(), r.sent
		c.replicated, c.unwaited = r.replicated, r.unwaited
	case errors.As(r.err, new(unsent)):
	case mayHaveRun(r.err):
		c.remember(r)
	default:
		c.Attempts++
	}
}

// remember notes that a request was sent of which no answer will be heard.
func (c *Call) remember(r *request) {
	c.Attempts++
	c.outstanding = true
	c.notAfter = max(c.notAfter, r.notAfter)
}
