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

	"github.com/holdfast-go/holdfast/internal/conn/call"
	"github.com/holdfast-go/holdfast/internal/conn/fault"
	"github.com/holdfast-go/holdfast/internal/conn/route"
	"github.com/holdfast-go/holdfast/internal/conn/server"
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
func (m *Manager) Run(ctx context.Context, c *call.Call) error {
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
func (m *Manager) over(ctx context.Context, c *call.Call) error {
	if m.life(c).Err() != nil {
		return errs.Closed
	}
	if c.Over() {
		return fmt.Errorf("the lease was over before the request could take effect: %w", errs.Lost)
	}
	return fault.Over(ctx)
}

// life returns the context that bounds the time in which the call may run at all.
func (m *Manager) life(c *call.Call) context.Context {
	if c.Cleanup {
		return m.closed
	}
	return m.closing
}

// attempt is one Run: the form of the next request, and the outcome of the last one.
type attempt struct {
	m    *Manager
	call *call.Call

	full     bool          // send the source
	fewer    bool          // send only the first Call.Enough keys
	detour   *server.Node  // the node that an ASK named, for the next request only
	quiet    bool          // send the script's quiet form
	denied   bool          // a server that an ASK named has answered no
	failures int           // how many in a row, for the backoff
	most     time.Duration // the longest pause of the backoff; 0: maxBackoff
	last     error         // for the caller's error
	silent   bool          // the last request found no server, got no answer, or arrived too late
	failing  time.Time     // when the first failure was; zero until then
	warned   bool
}

// answered is the wait that stands for "no further request: the call was answered".
const answered time.Duration = -1

// try sends one request. It returns how long to wait before the next one, or answered, or an
// error that ends the call.
func (t *attempt) try(ctx context.Context) (time.Duration, error) {
	n, asking, err := t.target(ctx)
	if err != nil {
		return t.failed(ctx, nil, fault.Unsent{Err: err})
	}
	o := n.Send(ctx, t.sending(n, asking))
	if o.Left {
		if ctx.Err() != nil {
			t.silent = true
			return 0, t.because(fault.Over(ctx))
		}
		return 0, nil
	}
	t.silent = false
	if o.Err != nil {
		return t.failed(ctx, n, o.Err)
	}
	t.accepted()
	n.Tell(ctx, t.call, o.Messages)
	return t.replied(asking), nil
}

// target returns the server for the next request: the one that an ASK has named (asking), or else the
// one that has the key.
func (t *attempt) target(ctx context.Context) (n *server.Node, asking bool, err error) {
	if n, t.detour = t.detour, nil; n != nil {
		return n, true, nil
	}
	n, err = t.m.servers.Node(ctx, t.call.Keys[0])
	return n, false, err
}

// sending returns the next request to that server.
func (t *attempt) sending(n *server.Node, asking bool) server.Sending {
	t.quiet = t.quiet || t.m.hush(t.call.Script)
	next := server.Sending{Call: t.call, Manner: server.Manner{Full: t.full, Fewer: t.fewer, Asking: asking, Quiet: t.quiet}}
	if t.call.Script.InBundle() != nil {
		next.Slot = t.m.Slot(t.call.Keys[0])
	}
	if t.m.servers.Follows() && !asking {
		next.Elsewhere = elsewhere(t.m.servers, n, t.call.Keys[0])
	}
	return next
}

// elsewhere returns a function that reports whether another server has the key now. It is a function of its own
// so that an attempt stays on the stack.
func elsewhere(servers *route.Servers, n *server.Node, key string) func() bool {
	return func() bool { return servers.Elsewhere(n, key) }
}

// replied returns answered, or how long to wait before the next request if the reply does not
// count. asking says that an ASK had named the server.
func (t *attempt) replied(asking bool) time.Duration {
	switch status := t.call.Status(); {
	case status == call.Late:
		t.silent = true
		return t.later() // the reply has corrected our estimate of the server's clock
	case status == call.Refused && asking && !t.denied:
		// A server that is importing a slot also answers no for a key that it does not have:
		// because the key has moved on since, or has not arrived yet. The ASK that sent us
		// there may be old.
		t.denied = true
		return t.later()
	}
	return answered
}

// failed decides what to do about a failure.
func (t *attempt) failed(ctx context.Context, n *server.Node, err error) (time.Duration, error) {
	verdict := t.judge(err)
	if fault.Ended(ctx) {
		pause(ctx, t.m.life(t.call), maxBackoff) // its timer may be a moment late: nothing is sent until then
	}
	if over := t.m.over(ctx, t.call); over != nil {
		return 0, t.because(over)
	}
	if t.refusesToPublish(err) {
		return t.later(), nil
	}
	switch t.last = err; verdict {
	case fault.Unknown:
		t.full = true
		return t.later(), nil
	case fault.Anew:
		return t.later(), nil
	case fault.Moved, fault.Redirected:
		return t.follow(n, err)
	case fault.Again:
		return t.again(n, err), nil
	default:
		return 0, fault.Typed(err, t.text())
	}
}

// judge returns the verdict on a failure. A clean-up goes on after what an operator can mend.
func (t *attempt) judge(err error) fault.Verdict {
	verdict := fault.Judge(err)
	if t.most = 0; verdict == fault.Final && t.call.Cleanup && fault.CleanUpOutlasts(err) {
		verdict, t.most = fault.Again, mendBackoff
	}
	t.silent = verdict == fault.Again && mayBeSilent(err)
	return verdict
}

// mayBeSilent reports whether an error may mean that the server did not answer the request. A
// refusal for a reason that only an operator can end is an answer.
func mayBeSilent(err error) bool {
	return fault.RemedyOf(err) != fault.Operator || errors.As(err, new(fault.Unreached)) || errors.As(err, new(fault.Unsent))
}

// again returns how long to wait before the request is sent again after a failure that may pass.
func (t *attempt) again(n *server.Node, err error) time.Duration {
	if fault.HasCode(err, "TRYAGAIN ") && t.call.Enough > 0 && !t.fewer {
		t.fewer = true
		return t.later()
	}
	if n != nil && mayBeSilent(err) {
		t.m.servers.Failed(n)
	}
	t.complain()
	if errors.As(err, new(fault.Unreached)) {
		return 0 // the gate makes the next request wait
	}
	if t.failures++; t.failures == 1 && !fault.IsReply(err) {
		return 0 // a lost connection: the next one may work
	}
	return t.backoff()
}

// follow makes the next request go where a MOVED or ASK points.
func (t *attempt) follow(n *server.Node, err error) (time.Duration, error) {
	if !t.m.servers.Follows() {
		return 0, fmt.Errorf("the server belongs to a cluster, which takes a *redis.ClusterClient: %w: %w", errs.BadArgument, err)
	}
	addr := fault.Redirection(err, n.Addr)
	if fault.Judge(err) == fault.Moved {
		t.m.servers.Moved(t.call.Keys[0], addr)
		t.m.events.TellDoubt(server.DoubtOf(t.call.Keys[0]))
	} else {
		t.detour = t.m.servers.At(addr)
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

// backoff returns a pause that doubles from minBackoff to the bound for the kind of the last failure.
// Up to half of it is random.
func (t *attempt) backoff() time.Duration {
	d := cmp.Or(t.most, maxBackoff)
	if t.failures < 8 {
		d = min(d, minBackoff<<t.failures)
	}
	return d/2 + rand.N(d/2)
}

// because adds the last failure, which may be the reason, to end, the error with which the call
// ends.
//
// A deadline that passed while Redis could not be reached also matches errs.Unavailable. A
// caller that left before its deadline does not get that: Redis is not why it left.
func (t *attempt) because(end error) error {
	if t.silent {
		end = fault.Unavailable(end)
	}
	if t.last == nil {
		return end
	}
	return fmt.Errorf("%w (last failure: %w)", end, fault.Typed(t.last, t.text()))
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
		if fault.RemedyOf(t.last) == fault.Operator {
			what = "holdfast: redis refuses a clean-up, retrying"
		}
		t.m.log.Warn(what, "script", t.call.Script.Name(),
			"error", fault.Explained(t.last, t.text()))
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
