// This file moves a slot at random, one key at a time, while readers and writers of the lock in it
// come and go, whatever the braces of its name. Nobody gets in beside a writer, no writer gets in beside
// a reader, nobody loses a lease, and no call fails otherwise than that it would have to wait:
//	HOLDFAST_SERVERS=1 go test -run TestRandomSlots -slots 1000 ./rwlock

package rwlock_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

var slots = flag.Int("slots", 0, "play so many programs of moves; 0: 500, or a part of them")

func TestRandomSlots(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 2, 0)
	clients := clusterClients(t, cluster)
	n := *slots
	if n == 0 {
		n = redistest.Count(t, 500)
	}
	first := rand.Uint64() >> 32
	for i := range n {
		g := &moves{
			t: t, r: rand.New(rand.NewPCG(first+uint64(i), 0)), cluster: cluster, clients: clients,
			name: fmt.Sprintf([]string{"moved %d", "{moved}:%d", "{{%d}}", "x{t}{s}%d"}[i%4], i),
		}
		g.play()
		if t.Failed() {
			t.Logf("program %d of seed %d:\n%s", i, first, strings.Join(g.story, "\n"))
			return
		}
	}
}

// moves is one random program while it runs.
type moves struct {
	t       *testing.T
	r       *rand.Rand
	cluster *redistest.ClusterSet
	clients []*holdfast.Client
	name    string

	move  *redistest.SlotMove // nil: no move is going on
	held  []*stay
	ends  []chan struct{} // of the releases
	story []string
}

// stay is one lease.
type stay struct {
	client int
	writes bool
	lease  *lease.Lease
}

func (g *moves) play() {
	steps := []func(){g.read, g.read, g.write, g.downgrade, g.nest, g.release, g.release, g.open, g.moveKey, g.moveKey, g.finish}
	for range 25 {
		steps[g.r.IntN(len(steps))]()
		if g.check(); g.t.Failed() {
			break
		}
	}
	g.finish()
	for len(g.held) > 0 {
		g.release()
	}
	for _, ended := range g.ends {
		<-ended
	}
}

func (g *moves) note(format string, args ...any) {
	g.story = append(g.story, fmt.Sprintf(format, args...))
}

// briefly is how long a call may take. In a slot that moves, a call may have to wait for the end of
// the move.
const briefly = 40 * time.Millisecond

func (g *moves) read() {
	client := g.r.IntN(len(g.clients))
	g.take(client, false, g.t.Context(), g.clients[client].RWMutex(g.name).RLocker())
}

func (g *moves) write() {
	client := g.r.IntN(len(g.clients))
	g.take(client, true, g.t.Context(), g.clients[client].RWMutex(g.name))
}

// downgrade makes a writer read too.
func (g *moves) downgrade() {
	for _, s := range g.held {
		if s.writes {
			g.take(s.client, false, s.lease.Context(g.t.Context()), g.clients[s.client].RWMutex(g.name).RLocker())
			return
		}
	}
}

// nest enters again on the side that it holds.
func (g *moves) nest() {
	if len(g.held) == 0 {
		return
	}
	s := g.held[g.r.IntN(len(g.held))]
	m := g.clients[s.client].RWMutex(g.name)
	side := m.RLocker()
	if s.writes {
		side = m
	}
	g.take(s.client, s.writes, s.lease.Context(g.t.Context()), side)
}

// take tries to take the lock, or waits for it briefly, and checks that the lock may be granted.
func (g *moves) take(client int, writes bool, ctx context.Context, l lease.Locker) {
	nested := ctx != g.t.Context()
	ctx, cancel := context.WithTimeout(ctx, briefly)
	defer cancel()
	lock := l.TryLock
	if g.r.IntN(2) == 0 {
		lock = l.Lock
	}
	got, err := lock(ctx)
	g.note("client %d, writes %v, nested %v: %v", client, writes, nested, err)
	if err != nil {
		if !isAny(err, holdfast.ErrBusy, context.DeadlineExceeded) {
			g.t.Errorf("client %d (writes: %v): %v", client, writes, err)
		}
		return
	}
	for _, s := range g.held {
		if (writes || s.writes) && !nested {
			g.t.Errorf("client %d (writes: %v) got in beside client %d (writes: %v), whose lease says: %v", client, writes, s.client, s.writes, s.lease.Err())
		}
	}
	g.held = append(g.held, &stay{client, writes, got})
}

func (g *moves) release() {
	if len(g.held) == 0 {
		return
	}
	i := g.r.IntN(len(g.held))
	s := g.held[i]
	g.held = slices.Delete(g.held, i, i+1)
	g.note("client %d releases (writes: %v)", s.client, s.writes)
	ended := make(chan struct{})
	g.ends = append(g.ends, ended)
	go func() {
		defer close(ended)
		_ = s.lease.Release(context.Background()) // may take longer than a release tries
	}()
	select {
	case <-ended:
	case <-time.After(briefly):
		g.note("which takes longer")
	}
}

func (g *moves) open() {
	if g.move == nil {
		g.note("the slot opens")
		g.move = g.cluster.OpenSlot(g.name)
	}
}

func (g *moves) moveKey() {
	if g.move == nil {
		return
	}
	if keys := g.move.Keys(); len(keys) > 0 {
		slices.Sort(keys)
		key := keys[g.r.IntN(len(keys))]
		g.note("%q moves", key)
		g.move.MoveKeys(key)
	}
}

func (g *moves) finish() {
	if g.move != nil {
		g.note("the slot has moved")
		g.move.Finish()
		g.move = nil
	}
}

// check fails the test if a lease was lost.
func (g *moves) check() {
	for _, s := range g.held {
		if err := s.lease.Err(); err != nil {
			g.t.Errorf("client %d (writes: %v) was told: %v", s.client, s.writes, err)
		}
	}
}
