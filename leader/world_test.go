// What tests of elections add to the world of all tests. No test of this package leaves a goroutine behind.

package leader_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
)

const (
	name      = "scheduler"
	recordKey = "holdfast_leader:{scheduler}"
	namesKey  = "holdfast_leader_names:{scheduler}"
	queueKey  = "holdfast_lock_queue:{scheduler}"
	changes   = "holdfast_leader_changes:{scheduler}"
)

// stage is a world with candidates, and what they were seen to do.
type stage struct {
	*world.World

	forced bool // a leader's hold was taken away, so two may lead

	mu      sync.Mutex
	inside  int // how many works run whose context has not ended
	last    int64
	journal []string
	began   []time.Duration // of each in the journal
}

// play runs scene in a world of its own.
func play(t *testing.T, scene func(t *testing.T, s *stage)) {
	t.Helper()
	world.Play(t, func(t *testing.T, w *world.World) { scene(t, &stage{World: w}) })
}

// candidate is a candidate in a process of its own.
type candidate struct {
	*leader.Election
	s    *stage
	p    *world.Process
	id   string
	stop context.CancelCauseFunc
	done chan struct{}
	err  error

	mu    sync.Mutex
	term  *leader.Term
	began time.Duration
	ended time.Duration
	why   error // the cause of the end of the last term's context
	terms int
}

// candidate makes a candidate. It does not campaign yet.
func (s *stage) candidate(id string, options ...leader.Option) *candidate {
	s.T.Helper()
	return s.candidateOf(s.Process(), id, options...)
}

func (s *stage) candidateOf(p *world.Process, id string, options ...leader.Option) *candidate {
	options = append([]leader.Option{leader.Identity(id), leader.Value("addr of " + id)}, options...)
	return &candidate{Election: p.Leader(name, options...), s: s, p: p, id: id, done: make(chan struct{})}
}

// campaign runs the candidate with that work, and returns when it leads or waits.
func (c *candidate) campaign(work func(ctx context.Context, t *leader.Term) error) *candidate {
	ctx, stop := context.WithCancelCause(c.s.T.Context())
	c.stop = stop
	go func() {
		defer close(c.done)
		c.err = c.Run(ctx, func(ctx context.Context, t *leader.Term) error { return c.lead(ctx, t, work) })
	}()
	synctest.Wait()
	return c
}

// lead is the work of one term, watched by the stage.
func (c *candidate) lead(ctx context.Context, t *leader.Term, work func(context.Context, *leader.Term) error) error {
	c.s.enter(c.id, t.Token())
	over := sync.OnceFunc(func() {
		if ctx.Err() != nil {
			c.mu.Lock()
			c.ended, c.why = c.s.Now(), context.Cause(ctx)
			c.mu.Unlock()
		}
		c.s.leave()
	})
	stop := context.AfterFunc(ctx, over)
	defer func() {
		stop()
		over() // if it is on its way elsewhere, this waits for its end: then another may lead
	}()
	c.mu.Lock()
	c.term, c.began, c.terms = t, c.s.Now(), c.terms+1
	c.mu.Unlock()
	return work(ctx, t)
}

func (s *stage) enter(id string, token int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inside++; s.inside > 1 && !s.forced {
		s.T.Errorf("at %v: %d lead", s.Now(), s.inside)
	}
	if token <= s.last {
		s.T.Errorf("token %d after %d", token, s.last)
	}
	s.last = token
	s.journal, s.began = append(s.journal, id), append(s.began, s.Now())
}

func (s *stage) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inside--
}

// led returns who has led, in order.
func (s *stage) led() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.journal)
}

// seen returns what the candidate has seen of its terms.
func (c *candidate) seen() (term *leader.Term, began, ended time.Duration, why error) {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.term, c.began, c.ended, c.why
}

// retire ends the candidate's Run, and waits for it.
func (c *candidate) retire() {
	c.s.T.Helper()
	shutdown := errors.New("the process shuts down")
	c.stop(shutdown)
	<-c.done
	if !errors.Is(c.err, context.Canceled) || !errors.Is(c.err, shutdown) {
		c.s.T.Errorf("%s: Run returned %v", c.id, c.err)
	}
}

// retire ends the Runs of the candidates, one after the other.
func retire(all ...*candidate) {
	for _, c := range all {
		c.s.T.Helper()
		c.retire()
	}
}

// two has two candidates campaign: the first leads, the second waits.
func (s *stage) two() (a, b *candidate) {
	return s.candidate("a").campaign(untilOver), s.candidate("b").campaign(untilOver)
}

// ledFrom fails the test unless the candidate's last term began between these times.
func (c *candidate) ledFrom(least, most time.Duration) {
	c.s.T.Helper()
	_, began, _, _ := c.seen()
	world.Within(c.s.T, c.id+" leads", began, least, most)
}

// untilOver is a work that ends with its term.
func untilOver(ctx context.Context, _ *leader.Term) error {
	<-ctx.Done()
	return nil
}

// wantLeader fails the test unless everybody sees that candidate lead, in which term, since when and for how long yet.
func (s *stage) wantLeader(c *candidate, all ...*candidate) {
	s.T.Helper()
	term, began, _, _ := c.seen()
	for _, each := range append(all, c) {
		if got, want := each.IsLeader(), each == c; got != want {
			s.T.Errorf("at %v: %s leads: %v, want %v", s.Now(), each.id, got, want)
		}
		info, err := each.Leader(s.T.Context())
		if err != nil || info.Identity != c.id || info.Value != "addr of "+c.id {
			s.T.Errorf("at %v: %s sees %+v (%v), want %s", s.Now(), each.id, info, err, c.id)
			continue
		}
		world.Equal(s.T, info.Token, term.Token(), "token %d, want %d", term.Token())
		world.Within(s.T, "since", info.Since.Sub(s.Start), began-time.Second, began)
		world.Within(s.T, "left", info.Left, time.Second, 30*time.Second)
	}
}

// wantNobody fails the test unless nobody leads.
func (s *stage) wantNobody(c *candidate) {
	s.T.Helper()
	synctest.Wait()
	info, err := c.Leader(s.T.Context())
	if !errors.Is(err, holdfast.ErrNoLeader) || info.Leads() || c.IsLeader() {
		s.T.Errorf("at %v: %+v, %v, want nobody", s.Now(), info, err)
	}
	world.WantErr(s.T, c.RequestResign(s.T.Context()), holdfast.ErrNoLeader)
}

func TestMain(m *testing.M) {
	logging.Disable() // go-redis logs every connection that a test refuses
	redistest.Main(m)
}
