// Callers of one process that want the same answer: one of them asks, and the others share it.

package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// joins knows, by key, the callers of this process that want the same answer.
type joins struct {
	mu    sync.Mutex
	byKey map[string]*Join
}

// Join is a group of callers of this process that want the same answer. One of them leads: it asks
// for all of them.
type Join struct {
	joins *joins
	key   string
	sort  string
	turn  chan struct{} // holds one signal: whoever takes it leads
	done  chan struct{} // closed when answer is there

	answer  any
	waiting int   // how many wait for the turn or the answer; guarded by joins.mu
	reason  error // why there is no answer yet; nil: Redis has not said; guarded by joins.mu
}

// Lead is the turn of one caller to lead a Join. It must call Tell or Leave. The first such call
// ends the turn, even one that somebody makes in place of a caller that is stuck; later ones do
// nothing.
type Lead struct {
	join *Join
	over bool // guarded by joins.mu
}

// Join joins the callers of this process that want the answer for key, and of the same sort. The
// first one leads. The others wait for the answer that the leader passes to Tell. If its turn ends
// without one, the next of them leads. A caller of another sort than the present ones leads alone:
// it shares nothing.
//
// Join returns a Lead if the caller leads, and an answer otherwise. If ctx ends the wait, the error
// matches ctx's error, and what a leader has said; if none has said anything, errs.Unavailable, if ctx's deadline
// has passed. The others wait on.
func (e *Engine) Join(ctx context.Context, key, sort string) (lead *Lead, answer any, err error) {
	j, leads := e.joins.join(key, sort)
	if leads {
		return &Lead{join: j}, nil, nil
	}
	select {
	case <-j.turn:
		lead = &Lead{join: j}
	case <-j.done:
		answer = j.answer
	case <-ctx.Done():
		err = e.joins.leaves(j, ctx.Err())
	case <-e.closing.Done():
		err = context.Cause(e.closing)
	}
	e.joins.waited(j)
	return lead, answer, err
}

// Unjoin keeps later callers from sharing the answer that present ones are about to get.
func (e *Engine) Unjoin(key string) {
	e.joins.mu.Lock()
	defer e.joins.mu.Unlock()
	delete(e.joins.byKey, key)
}

// join finds the callers for key, or begins with the first of them.
func (s *joins) join(key, sort string) (j *Join, leads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = make(map[string]*Join)
	}
	j = s.byKey[key]
	if j != nil && j.sort == sort {
		j.waiting++
		return j, false
	}
	mine := &Join{joins: s, key: key, sort: sort, turn: make(chan struct{}, 1), done: make(chan struct{})}
	if j == nil {
		s.byKey[key] = mine
	}
	return mine, true
}

// leaves returns the error of a caller that no longer waits, as its context has ended.
func (s *joins) leaves(j *Join, end error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case j.reason != nil:
		return fmt.Errorf("%w: %w", j.reason, end)
	case errors.Is(end, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", errs.Unavailable, end) // Redis has answered nobody yet
	default:
		return end
	}
}

// waited notes that one caller no longer waits: it leads now, or has left. If nobody is left,
// waited ends the Join.
func (s *joins) waited(j *Join) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.waiting--; j.waiting == 0 && len(j.turn) > 0 {
		s.remove(j)
	}
}

// remove ends the Join for later callers. The caller holds the mutex.
func (s *joins) remove(j *Join) {
	if s.byKey[j.key] == j {
		delete(s.byKey, j.key)
	}
}

// end ends the turn, and reports whether it did: false if it had ended before. The caller holds the
// mutex.
func (l *Lead) end() bool {
	ended := !l.over
	l.over = true
	return ended
}

// Says notes why there is no answer yet: errs.Busy if this leader, or another that Redis has named, is at work.
func (l *Lead) Says(reason error) {
	l.join.joins.mu.Lock()
	defer l.join.joins.mu.Unlock()
	l.join.reason = reason
}

// Tell gives the answer to all who wait for it.
func (l *Lead) Tell(answer any) {
	j := l.join
	j.joins.mu.Lock()
	ended := l.end()
	if ended {
		j.joins.remove(j)
	}
	j.joins.mu.Unlock()
	if ended {
		j.answer = answer
		close(j.done)
	}
}

// Leave ends the turn without an answer. The next caller leads.
func (l *Lead) Leave() {
	j := l.join
	j.joins.mu.Lock()
	defer j.joins.mu.Unlock()
	switch {
	case !l.end():
	case j.waiting > 0:
		j.turn <- struct{}{}
	default:
		j.joins.remove(j)
	}
}
