// Run: it retries a call until it is answered or its context ends.

package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

const (
	minBackoff = 5 * time.Millisecond
	maxBackoff = 150 * time.Millisecond
	// mendBackoff is the longest pause of a clean-up that waits for an operator.
	mendBackoff = time.Second
	// complainAfter is how long a call is retried before the log says so.
	complainAfter = time.Second
	// complainEvery is how often the log says so, however many calls are retried.
	complainEvery = time.Minute
)

// Run runs the call until it is answered. It returns nil when the script has answered. If ctx
// ends first, it returns an error that matches ctx's and names the last failure. After Close it
// returns errs.Closed. An error that no retry can mend is returned at once, with its sentinel.
func (m *Manager) Run(ctx context.Context, c *Call) error {
	t := attempt{m: m, call: c}
	m.sweeper.start()
	for {
		if err := m.over(ctx, c); err != nil {
			return t.because(err)
		}
		wait, err := t.try(ctx)
		if err != nil || wait == answered {
			return err
		}
		if wait > 0 {
			pause(ctx, m.life(c), wait)
		}
	}
}

// over returns the reason why no further request of the call may be sent; nil if one may be.
func (m *Manager) over(ctx context.Context, c *Call) error {
	if m.life(c).Err() != nil {
		return errs.Closed
	}
	if c.over() {
		return fmt.Errorf("the lease was over before the request could take effect: %w", errs.Lost)
	}
	return over(ctx)
}

// over returns why ctx has ended: its cause if that matches errs.Unavailable, which is the
// bound of a call that does not wait; ctx's error otherwise. It returns nil if ctx has not
// ended.
func over(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errs.Unavailable) {
		return cause
	}
	return ctx.Err()
}

// life returns the context that bounds the time in which the call may run at all.
func (m *Manager) life(c *Call) context.Context {
	if c.Cleanup {
		return m.closed
	}
	return m.closing
}

// attempt is one Run: the form of the next request, and the outcome of the last one.
type attempt struct {
	m    *Manager
	call *Call

	full     bool          // send the source
	fewer    bool          // send only the first Call.Enough keys
	detour   *node         // the node that an ASK named, for the next request only
	quiet    bool          // send the script's quiet form
	denied   bool          // a server that an ASK named has answered no
	failures int           // how many in a row, for the backoff
	most     time.Duration // the longest pause of the backoff; 0: maxBackoff
	last     error         // for the caller's error
	silent   bool          // the last request found no server, got no answer, or arrived too late
	failing  time.Time     // when the first failure was; zero until then
	warned   bool
}

// answered is the wait that means that there is nothing to wait for.
const answered time.Duration = -1

// try sends one request. It returns how long to wait before the next one, or answered, or an
// error that ends the call.
func (t *attempt) try(ctx context.Context) (time.Duration, error) {
	n := t.detour
	t.detour = nil
	asking := n != nil
	if n == nil {
		var err error
		if n, err = t.m.topology.node(ctx, t.call.Keys[0]); err != nil {
			return t.failed(ctx, nil, unsent{err})
		}
	}
	r := t.m.requests.get()
	t.quiet = t.quiet || t.m.hush(t.call.Script)
	r.call, r.manner = t.call, manner{full: t.full || n.gate.pace.slow(), fewer: t.fewer, asking: asking, quiet: t.quiet}
	if t.call.Script.bundle != nil {
		r.slot = t.m.Slot(t.call.Keys[0])
	}
	var elsewhere func() bool
	if t.m.topology.follows() && !asking {
		elsewhere = func() bool { return t.m.topology.elsewhere(n, t.call.Keys[0]) }
	}
	if !n.forCall(t.call).do(ctx, r, elsewhere) {
		if r.state.Load() == sent {
			t.call.remember(r) // its answer will not be read
		}
		if ctx.Err() != nil {
			t.silent = true
			return 0, t.because(over(ctx))
		}
		return 0, nil
	}
	t.silent = false
	t.call.absorb(r)
	failure, messages := r.err, r.messages()
	t.m.requests.put(r)
	if failure != nil {
		return t.failed(ctx, n, failure)
	}
	t.accepted()
	t.m.tell(ctx, n, t.call, messages)
	return t.replied(asking), nil
}

// replied returns answered, or how long to wait before the next request if the reply does not
// count. asking says that an ASK had named the server.
func (t *attempt) replied(asking bool) time.Duration {
	switch status := t.call.Status(); {
	case status == Late:
		t.silent = true
		return t.later() // the reply has corrected our estimate of the server's clock
	case status == Refused && asking && !t.denied:
		// A server that is importing a slot also answers no for a key that it does not have:
		// because the key has moved on since, or has not arrived yet. The ASK that sent us
		// there may be old.
		t.denied = true
		return t.later()
	}
	return answered
}

// failed decides what to do about a failure.
func (t *attempt) failed(ctx context.Context, n *node, err error) (time.Duration, error) {
	verdict := judge(err)
	if t.most = 0; verdict == final && t.call.Cleanup && mendable(err) {
		verdict, t.most = again, mendBackoff
	}
	t.silent = verdict == again && mayBeSilent(err)
	if ended(ctx) {
		pause(ctx, t.m.life(t.call), maxBackoff) // its timer may be a moment late: nothing is sent until then
	}
	if over := t.m.over(ctx, t.call); over != nil {
		return 0, t.because(over)
	}
	if t.refusesToPublish(err) {
		return t.later(), nil
	}
	switch t.last = err; verdict {
	case unknown:
		t.full = true
		return t.later(), nil
	case anew:
		return t.later(), nil
	case moved, redirected:
		return t.follow(n, err)
	case again:
		return t.again(n, err), nil
	default:
		return 0, typed(err, t.form())
	}
}

// mayBeSilent reports whether an error may mean that the server did not answer the request: it did
// if it refused it for a reason that only an operator ends.
func mayBeSilent(err error) bool {
	return remedyOf(err) != operator || errors.As(err, new(unreached)) || errors.As(err, new(unsent))
}

// again returns how long to wait before the request is sent again after a failure that may pass.
func (t *attempt) again(n *node, err error) time.Duration {
	if hasCode(err, "TRYAGAIN ") && t.call.Enough > 0 && !t.fewer {
		t.fewer = true
		return t.later()
	}
	if n != nil && mayBeSilent(err) {
		t.m.topology.failed(n)
	}
	t.complain()
	if errors.As(err, new(unreached)) {
		return 0 // the gate makes the next request wait
	}
	if t.failures++; t.failures == 1 && !isReply(err) {
		return 0 // a lost connection: the next one may work
	}
	return t.backoff()
}

// follow makes the next request go where a MOVED or ASK points.
func (t *attempt) follow(n *node, err error) (time.Duration, error) {
	if !t.m.topology.follows() {
		return 0, fmt.Errorf("the server belongs to a cluster, which takes a *redis.ClusterClient: %w: %w", errs.BadArgument, err)
	}
	addr := redirection(err, n.addr)
	if judge(err) == moved {
		t.m.topology.moved(t.call.Keys[0], addr)
		t.m.events.doubt(slotOf(t.call.Keys[0]))
	} else {
		t.detour = t.m.topology.at(addr)
	}
	return t.later(), nil
}

// later returns how long to wait before a request that is expected to succeed: not at all the
// first two times, backoff after that.
func (t *attempt) later() time.Duration {
	t.failures++
	if t.failures < 3 {
		return 0
	}
	return t.backoff()
}

// backoff returns a pause that doubles from minBackoff to the most that the last failure is worth, up
// to half of it random.
func (t *attempt) backoff() time.Duration {
	d := cmp.Or(t.most, maxBackoff)
	if t.failures < 8 {
		d = min(d, minBackoff<<t.failures)
	}
	return d/2 + rand.N(d/2)
}

// because adds to end, the error with which the call ends, the last failure, which may have led
// to it.
//
// A deadline that passed while Redis could not be reached also matches errs.Unavailable. A
// caller that left before its deadline is not told that: Redis is not why it left.
func (t *attempt) because(end error) error {
	if t.silent {
		end = unavailable(end)
	}
	if t.last == nil {
		return end
	}
	return fmt.Errorf("%w (last failure: %w)", end, typed(t.last, t.form()))
}

// unavailable makes the error of a deadline also say that Redis could not be reached before it.
func unavailable(end error) error {
	if errors.Is(end, context.DeadlineExceeded) && !errors.Is(end, errs.Unavailable) {
		return fmt.Errorf("%w: %w", errs.Unavailable, end)
	}
	return end
}

// complain logs that Redis has not answered for a while.
func (t *attempt) complain() {
	if t.failing.IsZero() {
		t.failing = time.Now()
	}
	if t.warned || time.Since(t.failing) < complainAfter {
		return
	}
	if t.warned = t.m.outage.tell(time.Now()); t.warned {
		what := "holdfast: redis does not answer, retrying"
		if remedyOf(t.last) == operator {
			what = "holdfast: redis refuses a clean-up, retrying"
		}
		t.m.log.Warn(what, "script", t.call.Script.name,
			"error", explained(t.last, t.form()))
	}
}

// outage limits how often the calls of a Manager log that Redis does not answer.
type outage struct {
	mu   sync.Mutex // guards what follows
	told time.Time  // when this was last logged; zero before the first time
}

// tell reports whether to log now: once for all calls together, and again every complainEvery.
func (o *outage) tell(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.told.IsZero() && now.Sub(o.told) < complainEvery {
		return false
	}
	o.told = now
	return true
}

// pause waits for d, or less if either context ends.
func pause(ctx, life context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-life.Done():
	}
}
