// These tests move the slot of a lock to another server of a cluster: the readers stay in, whichever
// of their keys moves first.

package rwlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

func client(t *testing.T, rdb redis.UniversalClient) *holdfast.Client {
	c := holdfast.New(rdb)
	t.Cleanup(func() { c.Close() })
	return c
}

// clusterClients returns three Clients of a cluster, which are separate processes to it.
func clusterClients(t *testing.T, c *redistest.ClusterSet) []*holdfast.Client {
	t.Helper()
	return []*holdfast.Client{client(t, c.Client(t)), client(t, c.Client(t)), client(t, c.Client(t))}
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

// leave releases, and fails the test unless the lease was held until now.
func leave(t *testing.T, l *lease.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
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
		leave(t, leaves)
		move.Finish()
		if _, err := cs[2].RWMutex(name).TryLock(ctx); !errors.Is(err, holdfast.ErrBusy) || stays.Err() != nil {
			t.Errorf("%s: a writer tries: %v; the reader was told: %v", name, err, stays.Err())
		}
		leave(t, stays)
		leave(t, must(t)(cs[2].RWMutex(name).TryLock(ctx)))
	}
}

// A reader that is nested leaves while one key of its two has moved. What it writes then must not be in the
// way of the other key: MIGRATE refuses to move it to where there is one.
func TestANestedReaderLeavesInASlotOnTheMove(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 2, 0)
	c := clusterClients(t, cluster)[0]
	outer := must(t)(c.RWMutex(name).RLock(t.Context()))
	inner := must(t)(c.RWMutex(name).RLock(outer.Context(t.Context())))
	move := cluster.OpenSlot(name)
	keys := slices.DeleteFunc(move.Keys(), func(key string) bool { return strings.HasSuffix(key, ":1") })
	if len(keys) != 2 {
		t.Fatalf("without the first: %q", keys)
	}
	move.MoveKeys(keys...)
	left := make(chan error)
	go func() { left <- inner.Release(t.Context()) }()
	time.Sleep(300 * time.Millisecond) // it asks where the lock is now
	move.Finish()
	if err := <-left; err != nil {
		t.Error(err)
	}
	leave(t, outer)
}

// A reader nests once more while the last key of its three has not moved. It waits for that key too.
func TestAReaderNestsInASlotOnTheMove(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 2, 0)
	m := clusterClients(t, cluster)[0].RWMutex(name)
	ctx, leases := t.Context(), make([]*lease.Lease, 3)
	for i := range leases {
		leases[i] = must(t)(m.RLock(ctx))
		ctx = leases[i].Context(ctx)
	}
	move := cluster.OpenSlot(name)
	move.MoveKeys(slices.DeleteFunc(move.Keys(), func(key string) bool { return strings.HasSuffix(key, ":3") })...)
	entered := make(chan *lease.Lease)
	go func() {
		l, err := m.RLock(ctx)
		if err != nil {
			t.Error(err)
		}
		entered <- l
	}()
	time.Sleep(300 * time.Millisecond) // it asks where the lock is now
	move.Finish()
	leave(t, <-entered)
	for _, l := range leases {
		leave(t, l)
	}
}

// One script with five keys grants the writer. All five keys have moved to the other server before
// the read lease has.
func TestAReaderStaysInWhenAWriterAsksInASlotOnTheMove(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 2, 0)
	cs := clusterClients(t, cluster)
	leave(t, must(t)(cs[0].RWMutex(name).Lock(t.Context()))) // this leaves a token
	stays := must(t)(cs[0].RWMutex(name).RLock(t.Context()))
	rdb := cluster.Client(t)
	waits := func(marks string, f func(context.Context) (*lease.Lease, error)) <-chan *lease.Lease {
		in := make(chan *lease.Lease, 1)
		go func() {
			l, err := f(context.Background())
			if err != nil {
				t.Error(err)
			}
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
	leave(t, stays)
	for _, in := range []<-chan *lease.Lease{writer, reader} {
		if l := <-in; l != nil {
			leave(t, l)
		}
	}
}
