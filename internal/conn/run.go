// The retrying of a call, until it is answered or its context ends.

package conn

import (
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
	// complainAfter is how long a call is retried before the log says so.
	complainAfter = time.Second
	// complainEvery is how often it does, however many calls are retried.
	complainEvery = time.Minute
)

// Run runs the call until it is answered. It returns nil when the script has
// answered; an error that matches ctx's, and names the last failure, when ctx
// ends first; errs.Closed after Close; a typed error at once for what no retry
// mends.
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

// over returns why no further request of the call may be sent, if so.
func (m *Manager) over(ctx context.Context, c *Call) error {
	if m.life(c).Err() != nil {
		return errs.Closed
	}
	if c.over() {
		return fmt.Errorf("the lease was over before the request could take effect: %w", errs.Lost)
	}
	return over(ctx)
}

// over returns why ctx has ended: the bound of a call that does not wait, or its error.
func over(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errs.Unavailable) {
		return cause
	}
	return ctx.Err()
}

// life is the time in which the call may run at all.
func (m *Manager) life(c *Call) context.Context {
	if c.Cleanup {
		return m.closed
	}
	return m.closing
}

// attempt is one Run: what the next request must look like, and what became of
// the last.
type attempt struct {
	m    *Manager
	call *Call

	full     bool      // send the source
	fewer    bool      // send the keys that are enough
	detour   *lane     // where ASK sent us, for the next request only
	denied   bool      // there the answer was no
	failures int       // in a row, for the backoff
	last     error     // for the caller's error
	silent   bool      // the last request found no server, or had no answer, or came to it too late
	failing  time.Time // since when; zero until something has failed
	warned   bool
}

// answered is the wait that says there is nothing to wait for.
const answered time.Duration = -1

// try sends one request. It returns how long to wait before the next, or
// answered, or an error that ends the call.
func (t *attempt) try(ctx context.Context) (time.Duration, error) {
	l := t.detour
	t.detour = nil
	asking := l != nil
	if l == nil {
		var err error
		if l, err = t.m.topology.lane(ctx, t.call.Keys[0]); err != nil {
			return t.failed(ctx, nil, unsent{err})
		}
	}
	r := t.m.requests.get()
	r.call, r.full, r.fewer, r.asking = t.call, t.full, t.fewer, asking
	var elsewhere func() bool
	if t.m.topology.follows() && !asking {
		elsewhere = func() bool { return t.m.topology.elsewhere(l, t.call.Keys[0]) }
	}
	if !l.forCall(t.call).do(ctx, r, elsewhere) {
		if r.state.Load() == sent {
			t.call.remember(r) // nobody will hear the answer
		}
		if ctx.Err() != nil {
			t.silent = true
			return 0, t.because(over(ctx))
		}
		return 0, nil
	}
	t.silent = false
	t.call.absorb(r)
	failure := r.err
	t.m.requests.put(r)
	if failure != nil {
		return t.failed(ctx, l, failure)
	}
	switch status := t.call.Status(); {
	case status == Late:
		t.silent = true
		return t.later(), nil // the reply has set our idea of the server's clock right
	case status == no && asking && !t.denied:
		// A server that is to get the slot says so of a key that has gone on from it
		// since, or is not there yet again: who sent us there may have done so long ago.
		t.denied = true
		return t.later(), nil
	}
	return answered, nil
}

// failed decides what a failure asks for.
func (t *attempt) failed(ctx context.Context, l *lane, err error) (time.Duration, error) {
	verdict := judge(err)
	if verdict == final && t.call.Cleanup && mendable(err) {
		verdict = again
	}
	t.silent = verdict == again
	if over := t.m.over(ctx, t.call); over != nil {
		return 0, t.because(over)
	}
	switch t.last = err; verdict {
	case unknown:
		t.full = true
		return t.later(), nil
	case anew:
		return t.later(), nil
	case moved, redirected:
		return t.follow(l, err)
	case again:
		if hasCode(err, "TRYAGAIN ") && t.call.Enough > 0 && !t.fewer {
			t.fewer = true
			return t.later(), nil
		}
		if l != nil {
			t.m.topology.failed(l)
		}
		t.complain()
		if errors.As(err, new(unreached)) {
			return 0, nil // the gate has it wait
		}
		if t.failures++; t.failures == 1 && !isReply(err) {
			return 0, nil // a lost connection: the next one may do
		}
		return t.backoff(), nil
	default:
		return 0, typed(err, t.call.Script)
	}
}

// follow goes where a MOVED or ASK points.
func (t *attempt) follow(l *lane, err error) (time.Duration, error) {
	if !t.m.topology.follows() {
		return 0, fmt.Errorf("the server belongs to a cluster, which takes a *redis.ClusterClient: %w: %w", errs.BadArgument, err)
	}
	addr := redirection(err, l.addr)
	if judge(err) == moved {
		t.m.topology.moved(t.call.Keys[0], addr)
	} else {
		t.detour = t.m.topology.at(addr)
	}
	return t.later(), nil
}

// later waits only if the like has happened before: the next request is expected
// to do it.
func (t *attempt) later() time.Duration {
	t.failures++
	if t.failures < 3 {
		return 0
	}
	return t.backoff()
}

// backoff doubles from minBackoff to maxBackoff, with up to half of it random.
func (t *attempt) backoff() time.Duration {
	d := maxBackoff
	if t.failures < 8 {
		d = min(maxBackoff, minBackoff<<t.failures)
	}
	return d/2 + rand.N(d/2)
}

// because explains an end that the last failure may have led to.
//
// A deadline that passed while Redis could not be reached is errs.Unavailable. A caller that
// left before is not told that: Redis is not why it left.
func (t *attempt) because(end error) error {
	if t.silent {
		end = unavailable(end)
	}
	if t.last == nil {
		return end
	}
	return fmt.Errorf("%w (last failure: %w)", end, typed(t.last, t.call.Script))
}

// unavailable adds to a deadline that Redis could not be reached before it.
func unavailable(end error) error {
	if errors.Is(end, context.DeadlineExceeded) && !errors.Is(end, errs.Unavailable) {
		return fmt.Errorf("%w: %w", errs.Unavailable, end)
	}
	return end
}

// complain has the log say that Redis has not answered for a while.
func (t *attempt) complain() {
	if t.failing.IsZero() {
		t.failing = time.Now()
	}
	if t.warned || time.Since(t.failing) < complainAfter {
		return
	}
	t.warned = true
	if t.m.outage.tell(time.Now()) {
		t.m.log.Warn("holdfast: redis does not answer, retrying", "script", t.call.Script.name,
			"error", explained(t.last, t.call.Script))
	}
}

// outage is since when the calls of a Manager have waited for Redis.
type outage struct {
	mu   sync.Mutex // guards what follows
	told time.Time  // when the log was last told; zero before
}

// tell reports whether the log is to be told now: once for all calls, and again now and
// then.
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
