// Sends the scheduler's renewals through the connection manager.

package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/renewal"
)

// Renewable is a task that a script renews, either alone or together with others of its kind by
// a script that renews many.
type Renewable interface {
	renewal.Task
	// Part returns what the task brings to a renewal of many. Its Script is nil if the task is
	// renewed alone, or if there is nothing to renew any more.
	Part() Part
	// Renewal returns the call that renews the task alone, or nil if there is
	// nothing to renew any more.
	Renewal() *conn.Call
	// Renewed takes in the outcome of a renewal.
	Renewed(Renewed)
}

// Renewed is the outcome of one renewal.
type Renewed struct {
	Err   error         // why it failed; nil if Redis answered
	Held  bool          // what was to be renewed is still there
	TTL   time.Duration // its time to live, if it has an end: see Ends
	Sent  time.Time     // when the request that was answered was sent
	Short bool          // fewer replicas have it than were asked for
	// Cut is the time to live that the renewal found, if another client had made it shorter than it
	// should have been; 0 if none had.
	Cut time.Duration
}

// sender sends the scheduler's batches to Redis: the calls that renew many in one pipeline, and the
// calls that renew one in another. If a call for many fails by what a server says, or comes late,
// each of its tasks is renewed alone, so that no task gets an error that is another's.
type sender struct {
	e         *Engine
	outages   outages
	scratches sync.Pool // of *scratch
}

func (s *sender) Known(key string) string { return s.e.Conn.KnownNode(key) }

func (s *sender) Node(ctx context.Context, key string) (string, error) {
	return s.e.Conn.Node(ctx, key)
}

func (s *sender) Send(ctx context.Context, addr string, batch []renewal.Task, try time.Duration, waiting int) {
	s.behind(addr, batch[0], waiting)
	r, ok := s.scratches.Get().(*scratch)
	if !ok {
		r = new(scratch)
	}
	groups, alone := r.divide(batch, s.e.Conn.Slot)
	beside := s.sendSoon(ctx, addr, alone, try, len(groups) > 0)
	left := s.sendGroups(ctx, addr, groups, try, r)
	if !r.read {
		r.clear()
		s.scratches.Put(r)
	}
	beside()
	s.sendAlone(ctx, addr, left, try)
}

// sendSoon renews tasks by calls of their own: when the function that it returns is called, or beside what
// the caller does, if that takes longer than a try.
func (s *sender) sendSoon(ctx context.Context, addr string, tasks []Renewable, try time.Duration, busy bool) (finish func()) {
	if len(tasks) == 0 || !busy {
		return func() { s.sendAlone(ctx, addr, tasks, try) }
	}
	done := make(chan struct{})
	begin := time.AfterFunc(try, func() {
		defer close(done)
		s.sendAlone(ctx, addr, tasks, try)
	})
	return func() {
		if begin.Stop() {
			s.sendAlone(ctx, addr, tasks, try)
			return
		}
		<-done
	}
}

// sendGroups renews each group by one call. It returns the tasks whose outcome that call did not
// give.
func (s *sender) sendGroups(ctx context.Context, addr string, groups []group, try time.Duration, r *scratch) (alone []Renewable) {
	if len(groups) == 0 {
		return nil
	}
	answered := s.unanswered(addr, try)
	started, tasks := time.Now(), 0
	calls := make([]*conn.Call, len(groups))
	for i, g := range groups {
		calls[i] = r.call(g, s.e.client)
		tasks += len(g)
	}
	outcomes := s.e.Conn.RunOnce(ctx, try, addr, calls)
	answered()
	s.measure(time.Since(started), tasks)
	s.tried(addr, noneThrough(outcomes))
	for i, g := range groups {
		_, unheard := calls[i].Outstanding()
		r.read = r.read || unheard
		alone = append(alone, g.answer(calls[i], outcomes[i])...)
	}
	return alone
}

func (s *sender) sendAlone(ctx context.Context, addr string, tasks []Renewable, try time.Duration) {
	asked := make([]Renewable, 0, len(tasks))
	calls := make([]*conn.Call, 0, len(tasks))
	for _, task := range tasks {
		if call := task.Renewal(); call != nil {
			asked, calls = append(asked, task), append(calls, call)
		}
	}
	if len(calls) == 0 {
		return
	}
	answered := func() bool { return false }
	if len(ofHolds(asked, make([]error, len(asked)))) > 0 {
		answered = s.unanswered(addr, try)
	}
	defer answered()
	started, left := time.Now(), len(calls)
	outcomes := make([]error, len(calls))
	s.e.Conn.RunBatch(ctx, try, addr, calls, func(i int, err error) {
		outcomes[i] = err
		if left--; left == 0 {
			answered()
			s.measure(time.Since(started), len(calls))
			if told := ofHolds(asked, outcomes); len(told) > 0 {
				s.tried(addr, noneThrough(told))
			}
		}
		asked[i].Renewed(renewed(calls[i], err))
	})
}

// ofHolds returns the outcomes of holds alone. A Client may lack the right to write its identity, which
// says nothing about its renewals.
func ofHolds(tasks []Renewable, outcomes []error) []error {
	for i, task := range tasks {
		if _, is := task.(*presence); is {
			return slices.Delete(slices.Clone(outcomes), i, i+1)
		}
	}
	return outcomes
}

func (s *sender) measure(took time.Duration, n int) {
	s.e.measure(func() { s.e.Telemetry.RenewalBatch(took, n) })
}

func (s *sender) Fail(t renewal.Task, err error) {
	if _, is := t.(*presence); !is {
		s.tried("", err)
	}
	t.(Renewable).Renewed(Renewed{Err: err})
}
