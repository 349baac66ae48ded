// Share: a process takes more units by one command than its callers want now, and serves the next ones from them.

package limiter

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// keepShare is how long units stay here if nobody in the process wants them.
const keepShare = time.Second

// share is what this process has of one limit: units that it has taken for calls to come, and callers that wait for
// some.
type share struct {
	size int64 // that of Share

	mu     sync.Mutex
	left   int64
	id     string    // of the last request that has taken some
	last   answer    // that of the last request, from which the others are answered
	barred time.Time // until then calls for as many as the last refused one are refused too
	least  int64     // how many that were, beside those that are here

	asking int    // how many rounds are under way
	next   *round // those that wait until one of them is answered; nil: nobody does

	crowded bool // others came while the last round was under way: a round waits for them

	kept bool // a goroutine gives back in time what is left
	over bool // nobody uses it: the next call makes another
}

// here serves a call for n units here, if that can be.
func (s *share) here(n int64) (a answer, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.left >= n:
		s.left -= n
		return s.from(conn.Done, s.left), true
	case s.refuses(n):
		return s.from(conn.Refused, s.left), true
	}
	return a, false
}

// refuses reports whether a call for n units would be refused, as one was just before. The caller holds the mutex.
func (s *share) refuses(n int64) bool {
	return !s.barred.IsZero() && n-s.left >= s.least && time.Now().Before(s.barred)
}

// from returns the last answer as it would be now, if so many units that it counts were not taken. The caller holds the mutex.
func (s *share) from(status, units int64) answer {
	a := s.last
	a.at = time.Now()
	a.debt = max(a.debt-a.at.Sub(s.last.at), 0)
	return a.without(status, units)
}

// learn notes what a request was answered. The caller holds the mutex.
func (s *share) learn(q *request, a answer) {
	s.last, s.barred = a, time.Time{}
	if s.size > 1 && a.status != conn.Done {
		s.least = q.least
		s.barred = a.at.Add(min(a.until(q.least), heed))
	}
}

// keep keeps what is left for the calls to come, until nobody has asked for more for a while, or the Client ends.
func (l *Limiter) keep(s *share) {
	s.mu.Lock()
	begins := !s.kept
	s.kept = true
	s.mu.Unlock()
	if begins && !l.engine.Background(func() { l.keepAWhile(s) }) {
		l.giveUp(s)
	}
}

func (l *Limiter) keepAWhile(s *share) {
	for {
		s.mu.Lock()
		left := time.Until(s.last.at.Add(keepShare))
		s.mu.Unlock()
		if left <= 0 || engine.Sleep(l.engine.Draining(), left) != nil {
			break
		}
	}
	l.giveUp(s)
}

// giveUp gives back what is left of the share.
func (l *Limiter) giveUp(s *share) {
	s.mu.Lock()
	id, left := s.id, s.left
	s.left, s.kept = 0, false
	s.mu.Unlock()
	l.family.drop(l.at.Key, s)
	if left == 0 {
		return
	}
	l.engine.Settle(0, settleLimit, func(ctx context.Context) (*conn.Call, error) {
		call := l.giveBack(id, left, true)
		return call, l.engine.Conn.Run(ctx, call)
	})
}

// shareOf returns the share of the limit with that key.
func (f *family) shareOf(key string) *share {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.shares[key]
	if s == nil {
		if f.shares == nil {
			f.shares = make(map[string]*share)
		}
		s = &share{size: int64(f.share)}
		f.shares[key] = s
	}
	return s
}

// unbar lets the calls of l ask again that were refused by another rate; those of all its keys if it has no key.
func (f *family) unbar(l *Limiter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, s := range f.shares {
		if l.alone || key == l.at.Key {
			s.mu.Lock()
			s.barred = time.Time{}
			s.mu.Unlock()
		}
	}
}

// drop forgets a share that nobody uses.
func (f *family) drop(key string, s *share) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.kept || s.asking > 0 {
		return
	}
	s.over = true
	delete(f.shares, key)
}
