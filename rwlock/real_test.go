// These tests run on real servers. They move the slot of a lock to another server of a cluster, where the readers stay in,
// whichever of their keys moves first; they show what a server refuses that is short of memory; and they are about a lock that
// very many owners read, or have read. TestRandomSlots moves a slot at random, one key at a time, while readers and writers of
// the lock in it come and go: nobody gets in beside a writer, no writer gets in beside a reader, nobody loses a lease, and no
// call fails otherwise than that it would have to wait:
//	HOLDFAST_SERVERS=1 go test -run TestRandomSlots -slots 1000 ./rwlock

package rwlock_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/rwlock"
)

// clusterClients returns three Clients of a cluster, which are separate processes to it.
func clusterClients(t *testing.T, c *redistest.ClusterSet) (all []*holdfast.Client) {
	for range 3 {
		all = append(all, clienttest.OpenClient(t, c.Client(t)))
	}
	return all
}

// must returns a function that fails the test unless a call gave a lease.
func must(t *testing.T) func(*lease.Lease, error) *lease.Lease {
	return func(l *lease.Lease, err error) *lease.Lease {
		t.Helper()
		redistest.Must(t, err)
		return l
	}
}

// One reader stays while its lock moves, and the lock's own key moves first. Something happens before
// the read leases follow. No writer gets in until the reader has left.
func TestAReaderStaysInASlotOnTheMove(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 2, 0)
	cs := clusterClients(t, cluster)
	ctx := t.Context()
	for name, begin := range map[string]func(name string) (stays, leaves *lease.Lease){
		"another reader leaves": func(name string) (stays, leaves *lease.Lease) {
			return must(t)(cs[0].RWMutex(name).RLock(ctx)), must(t)(cs[1].RWMutex(name).RLock(ctx))
		},
		"its writer leaves": func(name string) (stays, leaves *lease.Lease) {
			leaves = must(t)(cs[0].RWMutex(name).Lock(ctx))
			return must(t)(cs[0].RWMutex(name).RLock(leaves.Context(ctx))), leaves
		},
	} {
		stays, leaves := begin(name)
		move := cluster.OpenSlot(name)
		move.MoveKeys(name)
		clienttest.GiveBack(t, leaves)
		move.Finish()
		if _, err := cs[2].RWMutex(name).TryLock(ctx); !errors.Is(err, holdfast.ErrBusy) || stays.Err() != nil {
			t.Errorf("%s: a writer tries: %v; the reader was told: %v", name, err, stays.Err())
		}
		clienttest.GiveBack(t, stays)
		clienttest.GiveBack(t, must(t)(cs[2].RWMutex(name).TryLock(ctx)))
	}
}

// A nested reader leaves, or nests once more, while one of its keys has not moved. It waits for that key, and writes
// nothing that is in its way: MIGRATE refuses to move a key to where there is one.
func TestANestedReaderInASlotOnTheMove(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 2, 0)
	c := clusterClients(t, cluster)[0]
	for _, tc := range []struct {
		what  string
		holds int
		last  string // how the key ends that moves last
		// call returns the leases that last after it.
		call func(m *rwlock.RWMutex, ctx context.Context, holds []*lease.Lease) ([]*lease.Lease, error)
	}{
		{"leaves", 2, ":1", func(_ *rwlock.RWMutex, _ context.Context, holds []*lease.Lease) ([]*lease.Lease, error) {
			return holds[:1], holds[1].Release(t.Context())
		}},
		{"nests", 3, ":3", func(m *rwlock.RWMutex, ctx context.Context, holds []*lease.Lease) ([]*lease.Lease, error) {
			l, err := m.RLock(ctx)
			return slices.Insert(holds, 0, l), err
		}},
	} {
		m, ctx := c.RWMutex(tc.what), t.Context()
		var holds []*lease.Lease
		for range tc.holds {
			l := must(t)(m.RLock(ctx))
			holds, ctx = append(holds, l), l.Context(ctx)
		}
		move := cluster.OpenSlot(tc.what)
		keys := slices.DeleteFunc(move.Keys(), func(key string) bool { return strings.HasSuffix(key, tc.last) })
		if len(keys) != tc.holds {
			t.Fatalf("%s: without the last: %q", tc.what, keys)
		}
		move.MoveKeys(keys...)
		after := make(chan []*lease.Lease)
		go func() {
			holds, err := tc.call(m, ctx, holds)
			redistest.Check(t, err)
			after <- holds
		}()
		time.Sleep(300 * time.Millisecond) // it asks where the lock is now
		move.Finish()
		clienttest.GiveBack(t, <-after...)
	}
}

// One script with five keys grants the writer. All five keys have moved to the other server before the read lease has.
func TestAReaderStaysInWhenAWriterAsksInASlotOnTheMove(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 2, 0)
	cs := clusterClients(t, cluster)
	clienttest.GiveBack(t, must(t)(cs[0].RWMutex(name).Lock(t.Context()))) // this leaves a token
	stays := must(t)(cs[0].RWMutex(name).RLock(t.Context()))
	rdb := cluster.Client(t)
	waits := func(marks string, f func(context.Context) (*lease.Lease, error)) <-chan *lease.Lease {
		in := make(chan *lease.Lease, 1)
		go func() {
			l, err := f(context.Background())
			redistest.Check(t, err)
			in <- l
		}()
		redistest.Eventually(t, time.Minute, "a mark in "+marks, func() error {
			if rdb.ZCard(t.Context(), marks).Val() == 0 {
				return errors.New("none")
			}
			return nil
		})
		return in
	}
	writer := waits(writers, cs[1].RWMutex(name).Lock)
	asks := rdb.ZRange(t.Context(), writers, 0, 0).Val()[0]
	reader := waits(readers, cs[2].RWMutex(name).RLock) // it waits behind the writer

	move := cluster.OpenSlot(name)
	move.MoveKeys(name, tokenKey, readers, writers, waiting)
	there := redis.NewClient(&redis.Options{Addr: move.To.Addr()})
	defer there.Close()
	mark := func() float64 {
		pipe := there.Pipeline() // ASKING holds for the next command only
		pipe.Do(t.Context(), "ASKING")
		until := pipe.ZScore(t.Context(), waiting, asks)
		_, _ = pipe.Exec(t.Context())
		return until.Val()
	}
	before := mark()
	redistest.Eventually(t, time.Minute, "the writer asks again", func() error {
		if len(writer) == 0 && mark() <= before {
			return errors.New("its mark is the old one")
		}
		return nil
	})
	move.Finish()
	if len(writer) > 0 || stays.Err() != nil {
		t.Errorf("writers that got in: %d; the reader was told: %v", len(writer), stays.Err())
	}
	clienttest.GiveBack(t, stays)
	for _, in := range []<-chan *lease.Lease{writer, reader} {
		if l := <-in; l != nil {
			clienttest.GiveBack(t, l)
		}
	}
}

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

// briefly is how long a call may take. In a slot that moves, a call may have to wait for the end of the move.
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
		if !errors.Is(err, holdfast.ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
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

func TestOutOfMemory(t *testing.T) {
	s := redistest.Server(t)
	c := clienttest.OpenClient(t, s.Client(t))
	m, ctx := c.RWMutex(name), t.Context()
	w := must(t)(m.Lock(ctx))
	r := must(t)(m.RLock(w.Context(ctx)))
	s.Admin().ConfigSet(ctx, "maxmemory", "1")
	for _, f := range []func(context.Context) (*lease.Lease, error){c.RWMutex("x").Lock, c.RWMutex("x").RLock} {
		redistest.Is(t, "in want of memory", redistest.Err(f(ctx)), holdfast.ErrOutOfMemory)
	}
	// What is there already goes on: nested leases, renewals, releases, the downgrade.
	nested, rnested := must(t)(m.Lock(w.Context(ctx))), must(t)(m.RLock(r.Context(ctx)))
	for _, l := range []*lease.Lease{w, r} {
		redistest.Check(t, l.Extend(ctx, time.Minute))
	}
	clienttest.GiveBack(t, nested, w, rnested, r)
	if s.Admin().Exists(ctx, name).Val() != 0 {
		t.Error("the lock is still there")
	}
}

// readerID is the owner id of the i-th of many readers.
func readerID(i int) string { return fmt.Sprintf("33333333-3333-3333-3333-333333333333:%d", i) }

// crowd makes a lock that n owners read. The leases of the first dead of these owners are over.
func crowd(t testing.TB, rdb redis.UniversalClient, n, dead int) {
	t.Helper()
	for from := 0; from < n; from += 10_000 {
		pipe := rdb.Pipeline()
		for i := from; i < min(from+10_000, n); i++ {
			pipe.HSet(t.Context(), name, "mode", "read", readerID(i), 2)
			if i < dead {
				continue
			}
			pipe.Set(t.Context(), key(readerID(i), 1), 1, time.Hour)
			pipe.Set(t.Context(), key(readerID(i), 2), 1, time.Hour)
		}
		pipe.PExpire(t.Context(), name, 2*time.Hour)
		redistest.Must(t, redistest.Err(pipe.Exec(t.Context())))
	}
}

// timesRun returns how often the server has run a command, including inside scripts.
func timesRun(t *testing.T, s *redistest.Proc, command string) int {
	t.Helper()
	stats := s.Admin().Info(t.Context(), "commandstats").Val()
	found := regexp.MustCompile(`cmdstat_` + command + `:calls=(\d+)`).FindStringSubmatch(stats)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

func TestAQueryLooksAtFewReadersAtATime(t *testing.T) {
	const n, dead = 3000, 1000
	s := redistest.Server(t)
	crowd(t, s.Admin(), n, dead)
	c := clienttest.OpenClient(t, s.Client(t))
	m := c.RWMutex(name)
	owner := func(i int) lease.Owner {
		o, err := lease.ParseOwner(readerID(i))
		redistest.Must(t, err)
		return o
	}
	for _, q := range []struct {
		name string
		ask  func(context.Context) (any, error)
		want any
		most int // calls of PTTL in each call of a script, at most
	}{
		{"Locked", func(ctx context.Context) (any, error) { return m.Locked(ctx) }, false, 0},
		{"HeldBy", func(ctx context.Context) (any, error) { return m.HeldBy(ctx, owner(n-1)) }, false, 0},
		{"RHoldCount", func(ctx context.Context) (any, error) { return m.RHoldCount(ctx, owner(n-1)) }, 2, 2},
		{"RHeldBy", func(ctx context.Context) (any, error) { return m.RHeldBy(ctx, owner(0)) }, false, 2},
		{"Holder", func(ctx context.Context) (any, error) { return m.Holder(ctx) }, lease.Owner{}, 0},
		{"ForceRelease", func(ctx context.Context) (any, error) { return m.ForceRelease(ctx) }, false, 0},
		{"RLocked", func(ctx context.Context) (any, error) { return m.RLocked(ctx) }, true, 1000},
		{"ReadHolds", func(ctx context.Context) (any, error) { return m.ReadHolds(ctx) }, 2 * (n - dead), 1000},
		{"RHolders", func(ctx context.Context) (any, error) {
			all, err := m.RHolders(ctx)
			return len(all), err
		}, n - dead, 1000},
		{"Remaining", func(ctx context.Context) (any, error) {
			d, err := m.Remaining(ctx)
			return d > time.Hour-5*time.Minute && d <= time.Hour, err
		}, true, 1000},
		{"Inspect", func(ctx context.Context) (any, error) {
			i, err := c.Inspect(ctx, name)
			return len(i.Holders), err
		}, n - dead, 1000},
	} {
		looked, asked := timesRun(t, s, "pttl"), timesRun(t, s, "evalsha")+timesRun(t, s, "eval")
		got, err := q.ask(t.Context())
		if err != nil || got != q.want {
			t.Errorf("%s: %v, %v, want %v", q.name, got, err, q.want)
		}
		looked, asked = timesRun(t, s, "pttl")-looked, timesRun(t, s, "evalsha")+timesRun(t, s, "eval")-asked
		if looked > q.most*asked {
			t.Errorf("%s looked at %d keys in %d calls, want %d each at the most", q.name, looked, asked, q.most)
		}
	}
}

func TestManyZombiesAreSweptInBoundedSteps(t *testing.T) {
	s := redistest.Server(t)
	crowd(t, s.Admin(), 20_000, 20_000)
	s.Admin().ConfigResetStat(t.Context())
	clienttest.GiveBack(t, must(t)(clienttest.OpenClient(t, s.Client(t)).RWMutex(name).Lock(t.Context())))
	if tries := timesRun(t, s, "evalsha"); tries < 10 {
		t.Errorf("%d runs of scripts swept 20 000", tries)
	}
}
