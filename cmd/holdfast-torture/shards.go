// Shards: a lane is a member for a while, leaves, and comes again. Each work on a shard is a hold of that shard.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/shards"
)

const (
	// shardsOfAName is how many shards the members of one name share.
	shardsOfAName = 40
	// comeEvery is the longest pause of a lane between two memberships.
	comeEvery = 100 * time.Millisecond
)

// runShards is a member, again and again, until ctx ends.
func (l *lane) runShards(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := l.belong(ctx); err != nil {
			return fmt.Errorf("lane %s: %w", l.name, err)
		}
		time.Sleep(time.Duration(l.rand.Int64N(int64(comeEvery))))
	}
	return nil
}

// belong is one membership. Most are shorter than a lease.
func (l *lane) belong(ctx context.Context) error {
	m := &membership{
		lane: l, name: fmt.Sprintf("%s-%d", l.kind, l.rand.IntN(l.names)), seed: l.rand.Uint64(),
		since: time.Now(), free: map[int]time.Time{},
	}
	s := l.ways.clients[0].Shards(m.name, shardsOfAName,
		shards.Lease(l.ways.lease), shards.Weight(1+l.rand.IntN(3)), shards.Moves(l.rand.IntN(3)))
	running, stop := context.WithTimeout(ctx, time.Duration(l.rand.Int64N(int64(2*l.ways.lease))))
	defer stop()
	if err := s.Run(running, m.work); running.Err() == nil {
		return l.missed(ctx, m.name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broken
}

// membership is one Run. Its works go on beside each other, so each has its own connection to the referee.
type membership struct {
	*lane
	name  string
	seed  uint64
	since time.Time

	mu     sync.Mutex
	free   map[int]time.Time // since when it may have each shard again
	broken error             // the referee cannot be reached
}

// work is a hold of one shard until its context ends.
func (m *membership) work(ctx context.Context, s *shards.Shard) error {
	err := m.hold(ctx, s)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free[s.Number()] = time.Now()
	if err != nil && m.broken == nil {
		m.broken = err
	}
	return nil
}

func (m *membership) hold(ctx context.Context, s *shards.Shard) error {
	conn, err := net.Dial("unix", m.conn.RemoteAddr().String())
	if err != nil {
		return err
	}
	defer conn.Close()
	l := *m.lane
	l.line, l.rand = newLine(conn), rand.New(rand.NewPCG(m.seed, uint64(s.Token())))
	l.name = fmt.Sprintf("%s shard %d", m.lane.name, s.Number())
	m.mu.Lock()
	call := m.since
	if free := m.free[s.Number()]; free.After(call) {
		call = free
	}
	m.mu.Unlock()
	h := l.hold(fmt.Sprintf("%s.%d", m.name, s.Number()), call, false, taking{amount: 1, renewed: true}, workOn{ctx}, s.Token())
	read, entered, err := h.enter()
	for err == nil && entered && ctx.Err() == nil {
		if err = h.idle(h.length(), shortBeat); err == nil {
			_, err = h.write(read)
			read.Value++
		}
		time.Sleep(time.Duration(l.rand.Int64N(int64(sitBeat))))
	}
	if err != nil {
		return err
	}
	<-ctx.Done()
	return h.finish(entered)
}

// workOn is the grant that the work on a shard has. Its member gives the shard up some time after the work has returned.
type workOn struct{ ctx context.Context }

func (w workOn) Context(context.Context) context.Context { return w.ctx }
func (w workOn) Deadline() time.Time                     { return time.Time{} }

func (w workOn) Release(context.Context) error {
	if cause := context.Cause(w.ctx); errors.Is(cause, holdfast.ErrLost) {
		return cause
	}
	return holdfast.ErrResigned
}
