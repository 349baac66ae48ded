// These tests move the slot of a lock with readers to another server: the readers stay in,
// whichever of their keys moves first.

package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// clusterClients returns n Clients of a cluster, which are separate processes to it.
func clusterClients(t *testing.T, c *redistest.ClusterSet, n int) (all []*holdfast.Client) {
	t.Helper()
	for range n {
		client := holdfast.New(c.Client(t))
		t.Cleanup(func() { client.Close() })
		all = append(all, client)
	}
	return all
}

// must returns a function that fails the test unless a call gave a lease.
func must(t *testing.T) func(*lease.Lease, error) *lease.Lease {
	return func(l *lease.Lease, err error) *lease.Lease {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

// keepsWritersOut fails the test unless the reader is in and no writer gets in beside it.
func keepsWritersOut(t *testing.T, reader *lease.Lease, m interface {
	TryLock(context.Context) (*lease.Lease, error)
}) {
	t.Helper()
	w, err := m.TryLock(t.Context())
	if err == nil {
		t.Errorf("a writer got in with token %d; the reader was told: %v", w.Token(), reader.Err())
	} else if !errors.Is(err, holdfast.ErrBusy) {
		t.Errorf("a writer that tries: %v", err)
	}
	if reader.Err() != nil {
		t.Errorf("the reader was told: %v", reader.Err())
	}
	if err := reader.Release(t.Context()); err != nil {
		t.Errorf("release of the reader: %v", err)
	}
	w, err = m.TryLock(t.Context())
	if err != nil {
		t.Errorf("a writer, after the last reader: %v", err)
	} else if err := w.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAReaderStaysInWhenAnotherLeavesASlotOnTheMove(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 2, 0)
	cs := clusterClients(t, cluster, 3)
	stays := must(t)(cs[0].RWMutex(name).RLock(t.Context()))
	leaves := must(t)(cs[1].RWMutex(name).RLock(t.Context()))
	move := cluster.OpenSlot(name)
	move.MoveKeys(name) // before the read leases move
	if err := leaves.Release(t.Context()); err != nil {
		t.Error(err)
	}
	move.Finish()
	keepsWritersOut(t, stays, cs[2].RWMutex(name))
}

func TestAReaderStaysInWhenItsWriterLeavesASlotOnTheMove(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 2, 0)
	cs := clusterClients(t, cluster, 2)
	w := must(t)(cs[0].RWMutex(name).Lock(t.Context()))
	r := must(t)(cs[0].RWMutex(name).RLock(w.Context(t.Context())))
	move := cluster.OpenSlot(name)
	move.MoveKeys(name)
	if err := w.Release(t.Context()); err != nil {
		t.Error(err)
	}
	move.Finish()
	keepsWritersOut(t, r, cs[1].RWMutex(name))
}

// One script with five keys grants the writer. All five keys have moved to the other server before
// the read lease has.
func TestAReaderStaysInWhenAWriterAsksInASlotOnTheMove(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 2, 0)
	cs := clusterClients(t, cluster, 3)
	if err := must(t)(cs[0].RWMutex(name).Lock(t.Context())).Release(t.Context()); err != nil {
		t.Fatal(err) // this lock leaves a token
	}
	stays := must(t)(cs[0].RWMutex(name).RLock(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in := make(chan *lease.Lease, 1)
	go func() {
		if l, err := cs[1].RWMutex(name).Lock(ctx); err == nil {
			in <- l
		}
	}()
	rdb := cluster.Client(t)
	first := func(key string) (owner string) {
		redistest.Eventually(t, 10*time.Second, "a mark in "+key, func() error {
			marks := rdb.ZRange(t.Context(), key, 0, -1).Val()
			if len(marks) == 0 {
				return errors.New("none")
			}
			owner = marks[0]
			return nil
		})
		return owner
	}
	asks := first(writers)
	read := make(chan struct{})
	go func() {
		defer close(read)
		if l, err := cs[2].RWMutex(name).RLock(ctx); err == nil {
			_ = l.Release(context.Background())
		}
	}()
	first(readers) // one reader waits behind the writer

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
	redistest.Eventually(t, 10*time.Second, "the writer asks again", func() error {
		if len(in) == 0 && mark() <= before {
			return errors.New("its mark is the old one")
		}
		return nil
	})
	if len(in) > 0 {
		t.Errorf("a writer got in; the reader was told: %v", stays.Err())
	}
	move.Finish()
	if stays.Err() != nil {
		t.Errorf("the reader was told: %v", stays.Err())
	}
	if err := stays.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if l := <-in; l != nil {
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	<-read
}

// Keys move in any order, some at a time, as redis-cli --cluster reshard moves them, while readers
// leave.
func TestReadersStayInThroughAReshard(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 2, 0)
	cs := clusterClients(t, cluster, 3)
	const n = 100
	of := func(i int) string { return fmt.Sprintf("{moved}:%d", i) }
	var stays, leaves [n]*lease.Lease
	for i := range n {
		stays[i] = must(t)(cs[0].RWMutex(of(i)).RLock(t.Context()))
		leaves[i] = must(t)(cs[1].RWMutex(of(i)).RLock(t.Context()))
	}
	move := cluster.OpenSlot(of(0))
	keys := move.Keys()
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	next := 0
	for i := 0; i < len(keys); i += 10 {
		move.MoveKeys(keys[i:min(i+10, len(keys))]...)
		for ; next < n*min(i+10, len(keys))/len(keys); next++ {
			if err := leaves[next].Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	move.Finish()
	for i := range n {
		keepsWritersOut(t, stays[i], cs[2].RWMutex(of(i)))
		if t.Failed() {
			return
		}
	}
}

func TestANestedReadLockWaitsForASlotOnTheMove(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 2, 0)
	cs := clusterClients(t, cluster, 1)
	m := cs[0].RWMutex(name)
	outer := must(t)(m.RLock(t.Context()))
	move := cluster.OpenSlot(name)
	move.MoveKeys(name)
	nested := make(chan error, 1)
	go func() {
		l, err := m.RLock(outer.Context(t.Context()))
		if err == nil {
			err = l.Release(t.Context())
		}
		nested <- err
	}()
	pause(500 * time.Millisecond)
	move.Finish()
	if err := <-nested; err != nil {
		t.Errorf("the nested lease: %v", err)
	}
	if err := outer.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
