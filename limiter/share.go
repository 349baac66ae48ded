// Share: a process takes several units by one command, and serves its own calls from them.

package limiter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// keepShare is how long units stay here if nobody in the process wants them.
const keepShare = time.Second

// share is what this process has taken of one limit for its calls.
type share struct {
	mu     sync.Mutex
	left   int64
	id     string        // of the last request that has taken some
	last   answer        // that of the last request, from which the others are answered
	barred time.Time     // until then calls for as many as the last refused one are refused too
	least  int64         // how many that were
	asking chan struct{} // closed when the request under way is answered; nil: there is none
	kept   bool          // a goroutine ends it in time
	over   bool          // it has been ended: the next call begins another
}

// shared takes n units from the share of this process. If there are too few, one caller takes several from Redis,
// for the others too.
func (l *Limiter) shared(ctx context.Context, n int64) (answer, int, error) {
	ctx, cancel := engine.Bounded(ctx)
	defer cancel()
	for attempts := 0; ; {
		s := l.family.shareOf(l)
		a, asking, leads := s.try(n)
		switch {
		case leads:
			q := request{script: takeScript, id: newID(), units: max(n, int64(l.family.share)), least: n}
			a, err := l.take(ctx, &q)
			s.answered(l, &q, &a, err)
			return a, attempts + q.attempts, err
		case asking == nil:
			return a, attempts, nil
		}
		select {
		case <-asking:
		case <-ctx.Done():
			return answer{}, attempts, unanswered(ctx)
		}
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

// try serves a call for n units here, if that can be. Otherwise somebody asks Redis already, or the caller leads: it does.
func (s *share) try(n int64) (a answer, asking <-chan struct{}, leads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case s.over && s.left == 0 && s.asking == nil:
		ended := make(chan struct{})
		close(ended)
		return a, ended, false
	case s.left >= n:
		s.left -= n
		return s.from(now, conn.Done), nil, false
	case s.asking != nil:
		return a, s.asking, false
	case n >= s.least && now.Before(s.barred):
		return s.from(now, conn.Refused), nil, false
	default:
		s.asking = make(chan struct{})
		return a, nil, true
	}
}

// from returns the last answer as it would be now, with what is left here. The caller holds the mutex.
func (s *share) from(now time.Time, status int64) answer {
	a := s.last
	a.status, a.at = status, now
	a.debt -= now.Sub(s.last.at) + a.rate.of(s.left)
	return a
}

// answered takes in what a request for n units, or more, was answered.
func (s *share) answered(l *Limiter, q *request, a *answer, err error) {
	s.mu.Lock()
	close(s.asking)
	s.asking = nil
	begins := !s.kept || s.over
	s.kept, s.over = true, false
	switch {
	case err != nil:
	case a.status != conn.Done:
		s.last, s.least = *a, q.least
		s.barred = a.at.Add(min(a.until(q.least), heed))
	default:
		s.last, s.id, s.barred = *a, q.id, time.Time{}
		s.left += a.units - q.least
		*a = s.from(a.at, conn.Done)
	}
	s.mu.Unlock()
	if begins && !l.engine.Background(func() { l.keep(s) }) {
		l.giveUp(s)
	}
}

// keep keeps the share until nobody has asked for more for a while, or the Client ends. Then it gives back what is
// left.
func (l *Limiter) keep(s *share) {
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

// giveUp gives back what is left of the share, and ends it.
func (l *Limiter) giveUp(s *share) {
	l.family.mu.Lock()
	if l.family.shares[l.at.Key] == s {
		delete(l.family.shares, l.at.Key)
	}
	l.family.mu.Unlock()
	s.mu.Lock()
	id, left := s.id, s.left
	s.left, s.over = 0, true
	s.mu.Unlock()
	if left == 0 {
		return
	}
	l.engine.Settle(0, settleLimit, func(ctx context.Context) (*conn.Call, error) {
		call := l.giveBack(id, left, true)
		return call, l.engine.Conn.Run(ctx, call)
	})
}

// shareOf returns the share of l, or a new one.
func (f *family) shareOf(l *Limiter) *share {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.shares[l.at.Key]
	if s == nil {
		if f.shares == nil {
			f.shares = make(map[string]*share)
		}
		s = new(share)
		f.shares[l.at.Key] = s
	}
	return s
}
