// What tests of shards add to the world of all tests: members that are watched.

package shards_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/shards"
)

const (
	name       = "orders"
	membersKey = "holdfast_shards:{orders}"
	tableKey   = "holdfast_shards_table:{orders}"
	tokenKey   = "holdfast_shards_token:{orders}"

	// settled is how long members need after a change at most: they hear of it, ask, give up, and others take.
	settled = 5 * time.Second
)

// stage is a world with members. It fails the test as soon as two works of a shard run at a time, or a token does not
// grow.
type stage struct {
	*world.World
	size   int
	forced bool // Redis has lost something, so two may have a shard

	mu     sync.Mutex
	all    []*member
	owner  []*member
	tokens []int64
	begun  []int // how often the work of each shard began
	moves  []int // how often the shard went to another member than it had before
	last   []*member
}

// play runs scene in a world of its own. In the end those that are still members retire.
func play(t *testing.T, size int, scene func(t *testing.T, s *stage)) {
	t.Helper()
	world.Play(t, func(t *testing.T, w *world.World) {
		s := newStage(w, size)
		scene(t, s)
		synctest.Wait()
		for _, m := range s.all {
			if m.err == nil {
				m.retire()
			}
		}
		synctest.Wait()
		for _, p := range w.Processes {
			p.Close()
		}
		if w.Mini.Exists(tokenKey) && w.Mini.TTL(tokenKey) <= 0 {
			t.Error("the token has no expiry")
		}
	})
}

func newStage(w *world.World, size int) *stage {
	return &stage{
		World: w, size: size, owner: make([]*member, size), tokens: make([]int64, size), begun: make([]int, size),
		moves: make([]int, size), last: make([]*member, size),
	}
}

// member is a member in a process of its own.
type member struct {
	*shards.Shards
	s    *stage
	p    *world.Process
	id   string
	stop context.CancelCauseFunc
	done chan struct{}
	err  error
	slow time.Duration // how long a work goes on after its context has ended

	has   map[int]*shards.Shard // guarded by stage.mu
	works map[int]context.Context
}

// join makes a member, and returns when it has asked for its shards. work, if it is not nil, is what it does.
func (s *stage) join(id string, work func(context.Context, *shards.Shard) error, options ...shards.Option) *member {
	s.T.Helper()
	return s.joinOf(s.Process(), id, 0, work, options...)
}

func (s *stage) joinOf(p *world.Process, id string, slow time.Duration, work func(context.Context, *shards.Shard) error, options ...shards.Option) *member {
	s.T.Helper()
	options = append([]shards.Option{shards.Identity(id), shards.Value("addr of " + id)}, options...)
	m := &member{Shards: p.Shards(name, s.size, options...), s: s, p: p, id: id, done: make(chan struct{}), slow: slow,
		has: make(map[int]*shards.Shard), works: make(map[int]context.Context)}
	ctx, stop := context.WithCancelCause(s.T.Context())
	m.stop = stop
	s.all = append(s.all, m)
	go func() {
		defer close(m.done)
		m.err = m.Run(ctx, func(ctx context.Context, shard *shards.Shard) error { return m.run(ctx, shard, work) })
	}()
	synctest.Wait()
	return m
}

// run is the work on one shard, watched by the stage.
func (m *member) run(ctx context.Context, shard *shards.Shard, work func(context.Context, *shards.Shard) error) error {
	m.s.enter(ctx, m, shard)
	defer m.s.leave(m, shard)
	if work != nil {
		return work(ctx, shard)
	}
	<-ctx.Done()
	time.Sleep(m.slow)
	return ctx.Err()
}

func (s *stage) enter(ctx context.Context, m *member, shard *shards.Shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := shard.Number()
	if s.owner[n] != nil && !s.forced {
		s.T.Errorf("at %v: %s begins the work on shard %d, which %s still does", s.Now(), m.id, n, s.owner[n].id)
	}
	if again := m.has[n] != nil && m.has[n].Token() == shard.Token(); shard.Token() < s.tokens[n] || shard.Token() == s.tokens[n] && s.last[n] != m {
		s.T.Errorf("at %v: shard %d has the token %d after %d (again: %v)", s.Now(), n, shard.Token(), s.tokens[n], again)
	}
	if s.last[n] != nil && s.last[n] != m {
		s.moves[n]++
	}
	s.owner[n], s.tokens[n], s.last[n] = m, shard.Token(), m
	s.begun[n]++
	m.has[n], m.works[n] = shard, ctx
}

func (s *stage) leave(m *member, shard *shards.Shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := shard.Number(); s.owner[n] == m {
		s.owner[n] = nil
	}
	delete(m.has, shard.Number())
}

// shares returns how many shards each member works on.
func (s *stage) shares(members ...*member) string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []int
	for _, m := range members {
		all = append(all, len(m.has))
	}
	return fmt.Sprint(all)
}

// want fails the test unless the members work on that many shards.
func (s *stage) want(want string, members ...*member) {
	s.T.Helper()
	if got := s.shares(members...); got != want {
		s.T.Fatalf("at %v: the members work on %s shards, want %s", s.Now(), got, want)
	}
}

// settle lets the members settle, and then fails the test unless they work on that many shards.
func (s *stage) settle(want string, members ...*member) {
	s.T.Helper()
	s.rest()
	s.want(want, members...)
}

// wantMoves fails the test unless so many shards have moved since moved was last called, each once.
func (s *stage) wantMoves(want int) {
	s.T.Helper()
	if all, most := s.moved(); all != want || most != 1 {
		s.T.Errorf("%d moves, at most %d of one shard, want %d and 1", all, most, want)
	}
}

// moved returns how many moves there have been since it was last called, and the most of one shard.
func (s *stage) moved() (all, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, n := range s.moves {
		all, most = all+n, max(most, n)
		s.moves[i] = 0
	}
	return all, most
}

// rest lets the members settle.
func (s *stage) rest() { s.At(s.Now() + settled) }

// retire ends the member's Run, and waits for it.
func (m *member) retire() {
	m.s.T.Helper()
	shutdown := errors.New("the process shuts down")
	m.stop(shutdown)
	<-m.done
	if !errors.Is(m.err, context.Canceled) || !errors.Is(m.err, shutdown) {
		m.s.T.Errorf("%s: %v", m.id, m.err)
	}
}

// context returns the context of the member's work on a shard.
func (m *member) context(shard int) context.Context {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return m.works[shard]
}
