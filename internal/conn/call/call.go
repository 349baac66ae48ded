// A call: one run of one script, and what is known of its outcome.

package call

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn/fault"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Window is how long after its sending a request may still change something: it determines the
// request's not-after. A request that a frozen server or a slow network holds back for longer
// changes nothing. A server that was seen to need longer for its replies has that longer time, up to
// MaxWindow: see the Pace of package server.
const (
	Window    = time.Second
	MaxWindow = 10 * time.Second
)

// Call is one run of one script, with what is known of its outcome. One goroutine uses it,
// once.
type Call struct {
	Script *Script
	Keys   []string // the first decides which server the call goes to
	Args   []any    // ARGV[2] and the following

	// Until, if set, is the local time at which the lease that the call prolongs ends. The call
	// takes no effect after that; Run then gives it up with errs.Lost.
	Until time.Time
	// AnyTime lets the call take effect at any time up to Until, and not only within Window
	// after its sending. It is for renewals, which are of use until then.
	AnyTime bool
	// Prompt keeps the call from taking effect later than Window after its sending, however slow its
	// server is.
	Prompt bool
	// Enough, if set, is how many of the keys are sufficient. If Redis refuses a call with all
	// of them because their slot is moving, the call is sent with only the first Enough.
	Enough int

	// Replicas is how many replicas must have acknowledged what the call did: see Short.
	Replicas int
	// Cleanup marks a call that undoes or ends something. It goes on while the Client closes, and while
	// Redis refuses it for a reason that an operator can mend.
	Cleanup bool

	// Reply is the script's answer.
	Reply Reply
	// Sent is when the request that was answered was sent.
	Sent time.Time
	// Attempts counts the requests that were sent.
	Attempts int

	small *Small             // the Small that this Call is part of; nil if none
	usual [BundleWidth]int64 // the numbers of Reply, if the answer was the usual one
	unheard
	acknowledged
}

// unheard records the requests of a call whose replies were never heard: see Outstanding.
type unheard struct {
	outstanding bool
	notAfter    int64
}

// acknowledged records how many replicas have acknowledged a call: see Short.
type acknowledged struct {
	replicated int   // how many did
	unwaited   error // why that number is not known
}

// Over reports whether Until has passed: then the call is no longer of use.
func (c *Call) Over() bool { return !c.Until.IsZero() && !time.Now().Before(c.Until) }

// Deadline returns the time until which a request of the call may take effect if it is sent
// now.
func (c *Call) Deadline(now time.Time, window time.Duration) time.Time {
	if c.AnyTime {
		return c.Until
	}
	if c.Prompt {
		window = Window
	}
	if end := now.Add(window); c.Until.IsZero() || end.Before(c.Until) {
		return end
	}
	return c.Until
}

// Status returns the first element of the reply.
func (c *Call) Status() int64 { return c.Reply.Status() }

// ServerTime returns the server's clock in the reply, in microseconds; 0 if the script does not
// report it.
func (c *Call) ServerTime() int64 { return c.Reply.ServerTime() }

// Result returns the third element of the reply, for a script whose own answer is one number.
func (c *Call) Result() int64 { return c.Int(2) }

// ResultText returns the third element of the reply, for a script whose own answer is one text.
func (c *Call) ResultText() string { return c.Text(2) }

// Int returns element i of the reply if it is a number, and 0 otherwise.
func (c *Call) Int(i int) int64 {
	n, _ := c.Reply.Number(i)
	return n
}

// Text returns element i of the reply if it is a string, and "" otherwise.
func (c *Call) Text(i int) string { return c.Reply.Text(i) }

// Short reports whether fewer replicas have acknowledged the call than it asked for. The master has
// run it all the same.
func (c *Call) Short() bool { return c.replicated < c.Replicas }

// Shortage returns the error of a call that is Short. It matches errs.NotReplicated, unless Redis
// refused to say how many replicas have it: then it is that refusal. If the master has become a
// replica meanwhile, that is no refusal, and the error matches errs.NotReplicated.
func (c *Call) Shortage() error {
	switch {
	case c.unwaited == nil || !fault.IsReply(c.unwaited):
		return fmt.Errorf("%w: got %d, want %d", errs.NotReplicated, c.replicated, c.Replicas)
	case fault.Judge(c.unwaited) == fault.Again:
		return fmt.Errorf("%w: %w", errs.NotReplicated, c.unwaited)
	default:
		return fault.Typed(c.unwaited, "")
	}
}

// Outstanding reports whether a request of the call that was never answered may have run or may
// still run. If so, notAfter is the time after which it can no longer run, in microseconds on
// the server's clock.
func (c *Call) Outstanding() (notAfter int64, ok bool) { return c.notAfter, c.outstanding }

// AnswerUsually records a usual answer of the script: a number in place of an array.
func (c *Call) AnswerUsually(answer int64) {
	c.usual = c.Script.usual(c, answer)
	c.Reply = Reply{Numbers: c.usual[:]}
}

// Join adds the sendings of a copy of the call.
func (c *Call) Join(other *Call) {
	c.Attempts += other.Attempts
	c.outstanding = c.outstanding || other.outstanding
	c.notAfter = max(c.notAfter, other.notAfter)
}

// Take copies the answer of a copy of the call into the call.
func (c *Call) Take(other *Call) {
	c.Reply, c.Sent, c.acknowledged = other.Reply, other.Sent, other.acknowledged
}

// Acknowledge records how many replicas have acknowledged what the call did, or why that is not known.
func (c *Call) Acknowledge(replicas int, err error) { c.replicated, c.unwaited = replicas, err }

// Unheard records that the answer to a request that was sent will not be heard. It may run until
// notAfter.
func (c *Call) Unheard(notAfter int64) {
	c.Attempts++
	c.outstanding = true
	c.notAfter = max(c.notAfter, notAfter)
}
