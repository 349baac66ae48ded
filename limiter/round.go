// Rounds: calls that come while their process asks for others wait for the next request, and ask together.

package limiter

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// atOnce is how many rounds of one limit a process has under way. With one, two callers of a server that is far away
// would wait for each other; with more, each round has fewer callers, and the server more requests.
const atOnce = 2

// round is the calls that one request asks for. They get what it is answered in the order in which they came: as if
// each had asked alone, and nobody between them.
type round struct {
	callers []*caller
	done    chan struct{} // closed when the callers have their answers

	// What follows is set when the round begins.
	has   int64 // units that were here
	units int64 // what the request asks for; 0: there is enough here
	least int64 // what the most modest caller wants, beside what was here
}

// caller is one call in a round. What it was answered belongs to the caller when the round is done, the rest to
// the share.
type caller struct {
	n        int64
	gone     bool // its context has ended: what a round that has begun takes for it is left over
	answer   answer
	attempts int
	err      error
}

// pooled takes n units from what this process has already, or else from Redis, together with others of this process.
func (l *Limiter) pooled(ctx context.Context, n int64) (answer, int, error) {
	s := l.family.shareOf(l.at.Key)
	a, ok := s.here(n)
	if ok {
		return a, 0, nil
	}
	if err := l.engine.Begin(); err != nil { // otherwise those that come again and again keep Close from its end
		l.family.drop(l.at.Key, s)
		return a, 0, err
	}
	defer l.engine.Done()
	for {
		c := &caller{n: n}
		switch r, how := s.join(c); how {
		case leads:
			l.lead(ctx, s, r)
			return c.answer, c.attempts, c.err
		case begins:
			l.askInTurn(s)
			fallthrough
		case waits:
			return s.await(ctx, r, c)
		case retries:
		}
		s = l.family.shareOf(l.at.Key)
		if a, ok = s.here(n); ok {
			return a, 0, nil
		}
	}
}

// lead asks for a round in the caller's name. If others wait by then, a worker asks for them, so that the caller can go
// on.
func (l *Limiter) lead(ctx context.Context, s *share, r *round) {
	ctx, cancel := engine.Bounded(ctx)
	defer cancel()
	l.ask(ctx, s, r)
	l.askInTurn(s)
}

// askInTurn makes a worker ask for those that wait, round after round, until nobody waits.
func (l *Limiter) askInTurn(s *share) {
	if s.rests() {
		l.family.drop(l.at.Key, s)
	} else if !l.engine.Background(func() { l.askForAll(s) }) {
		for r := s.following(); r != nil; r = s.following() {
			s.answered(r, &request{}, answer{}, errs.Closed)
		}
	}
}

func (l *Limiter) askForAll(s *share) {
	runtime.Gosched() // others that were answered in the same round may come
	for r := s.following(); r != nil; r = s.following() {
		ctx, cancel := engine.Bounded(context.Background())
		l.ask(ctx, s, r)
		cancel()
		runtime.Gosched()
	}
	l.family.drop(l.at.Key, s)
}

// ask asks for a round, and gives its callers their answers.
func (l *Limiter) ask(ctx context.Context, s *share, r *round) {
	q := request{id: newID(), units: r.units, least: r.least}
	a, err := l.takeNow(ctx, &q)
	left := s.answered(r, &q, a, err)
	if s.size > 1 {
		l.keep(s)
	}
	if left > 0 {
		l.settle(q.id, left, 0)
	}
}

// role is what a caller is to do.
type role int

const (
	retries role = iota // try again: something has changed
	waits               // wait for its round
	begins              // have a worker ask for its round, and wait
	leads               // ask for its round, in which it is alone
)

// join adds a call to a round. A caller leads if it has been alone lately: its request has its own context, and needs no
// other goroutine.
func (s *share) join(c *caller) (r *round, how role) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.left >= c.n || s.refuses(c.n) {
		return nil, retries
	}
	free := s.free()
	if free {
		s.asking++
	}
	if free && !s.crowded {
		r = &round{callers: []*caller{c}}
		s.begin(r)
		return r, leads
	}
	if s.next == nil {
		s.next = &round{done: make(chan struct{})}
	}
	s.next.callers = append(s.next.callers, c)
	if free {
		return s.next, begins
	}
	return s.next, waits
}

// free reports whether one more round may begin. With Share there is one at a time: what two take could be more than is to
// be kept.
func (s *share) free() bool {
	if s.next != nil {
		return false
	}
	return s.asking == 0 || s.asking < atOnce && s.size <= 1
}

// rests reports whether nobody waits. Then one round less is under way.
func (s *share) rests() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		return false
	}
	s.asking--
	return true
}

// begin fixes what a round asks for: what its callers want and is not here, and with Share as many more as come to its
// size with the most modest of them. The caller holds the mutex.
func (s *share) begin(r *round) {
	r.callers = slices.DeleteFunc(r.callers, func(c *caller) bool { return c.gone })
	for i, c := range r.callers {
		if r.units += c.n; i == 0 || c.n < r.least {
			r.least = c.n
		}
	}
	r.has, s.left = s.left, 0
	if r.units -= r.has; r.units > 0 {
		r.units = min(r.units+max(s.size-r.least, 0), most)
	}
	r.least = max(r.least-r.has, 1)
}

// following returns the next round, which has begun; nil if nobody waits.
func (s *share) following() *round {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.next
	if s.next = nil; r != nil {
		if s.begin(r); r.units > 0 {
			return r
		}
		s.deal(r, 0, s.from(conn.Done, 0), r.has)
	}
	s.asking--
	return nil
}

// await waits until the round of the call is answered.
func (s *share) await(ctx context.Context, r *round, c *caller) (answer, int, error) {
	bound := time.NewTimer(engine.TryBound) // half of what a context with a timeout costs
	defer bound.Stop()
	var err error
	select {
	case <-r.done:
		return c.answer, c.attempts, c.err
	case <-ctx.Done():
		err = unanswered(ctx)
	case <-bound.C:
		err = fmt.Errorf("%w: no answer within %v", errs.Unavailable, engine.TryBound)
	}
	if s.leave(r, c) {
		return answer{}, 0, err
	}
	return c.answer, c.attempts, c.err
}

// leave takes a call out of its round. It reports false if the call was answered by now.
func (s *share) leave(r *round, c *caller) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isDone(r.done) {
		return false
	}
	c.gone = true
	return true
}

func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// answered gives the callers of a round what Redis has answered. It returns how many units nobody wants.
func (s *share) answered(r *round, q *request, a answer, err error) (left int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.left += r.has
		r.fail(q.attempts, err)
		return 0
	}
	s.learn(q, a)
	if left = s.deal(r, q.attempts, a, r.has+a.units); left < a.units {
		s.id = q.id
	}
	return left
}

// deal gives the units of an answer to the callers of a round, in turn. It returns how many are left and not kept: all
// that were taken and are left, if what is left would be a share or more, since its callers are gone. Parts of what a call
// has taken can be given back once. The caller holds the mutex.
func (s *share) deal(r *round, attempts int, a answer, units int64) (left int64) {
	for _, c := range r.callers {
		switch c.attempts = attempts; {
		case c.gone:
		case c.n > a.rate.burst:
			c.err = beyond(c.n)
		case c.n > units:
			c.answer = a.without(conn.Refused, units)
		default:
			units -= c.n
			c.answer = a.without(conn.Done, units)
		}
	}
	s.crowded = len(r.callers) > 1 || s.next != nil
	if left = min(units, a.units); units < s.size {
		left = 0
	}
	s.left += units - left
	r.end()
	return left
}

// fail gives all callers of a round the same error.
func (r *round) fail(attempts int, err error) {
	for _, c := range r.callers {
		c.attempts, c.err = attempts, err
	}
	r.end()
}

func (r *round) end() {
	if r.done != nil {
		close(r.done)
	}
}

// unanswered returns the error of a caller whose ctx has ended while another caller of its process asked Redis:
// the error that the other would get in the same case. It does not say that Redis is unreachable if the caller has
// left before its deadline.
func unanswered(ctx context.Context) error {
	err := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && !errors.Is(err, errs.Unavailable) {
		err = fmt.Errorf("%w: %w", errs.Unavailable, err)
	}
	return err
}
