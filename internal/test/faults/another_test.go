// Another server becomes the master, and has forgotten what the former one did last.

package faults

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// masters are two servers. Clients are led to the master as by Sentinels, which say who it is; the other
// server answers them as well.
type masters struct {
	servers [2]*redistest.MiniServer
	master  atomic.Int32
}

// onMasters runs play in a bubble with two Clients, as of two processes.
func onMasters(t *testing.T, play func(t *testing.T, m *masters, p, q *holdfast.Client)) {
	redistest.Bubble(t, func(t *testing.T) {
		m := &masters{servers: [2]*redistest.MiniServer{redistest.Mini(t), redistest.Mini(t)}}
		play(t, m, m.client(t), m.client(t))
	})
}

func (m *masters) client(t *testing.T) *holdfast.Client {
	names := []string{"one:6379", "other:6379"}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: names[m.master.Load()]}}}}, nil
		},
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			switch {
			case network != "tcp":
				return nil, &net.OpError{Op: "dial", Net: network, Addr: &net.UnixAddr{Name: addr, Net: network}, Err: errors.New("nothing is there")}
			case addr == names[0]:
				return m.servers[0].Dial(ctx, network, addr)
			default:
				return m.servers[1].Dial(ctx, network, addr)
			}
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return clienttest.OpenClient(t, rdb)
}

// replicate gives the other server the data of the master.
func (m *masters) replicate(t *testing.T) {
	ctx := t.Context()
	from, to := m.servers[m.master.Load()].Client(), m.servers[1-m.master.Load()].Client()
	defer func() { _, _ = from.Close(), to.Close() }()
	to.FlushDB(ctx)
	for _, key := range from.Keys(ctx, "*").Val() {
		switch kind := from.Type(ctx, key).Val(); kind {
		case "string":
			to.Set(ctx, key, from.Get(ctx, key).Val(), 0)
		case "hash":
			to.HSet(ctx, key, from.HGetAll(ctx, key).Val())
		case "set":
			for _, member := range from.SMembers(ctx, key).Val() {
				to.SAdd(ctx, key, member)
			}
		case "zset":
			to.ZAdd(ctx, key, from.ZRangeWithScores(ctx, key, 0, -1).Val()...)
		default:
			t.Fatalf("%s is a %s", key, kind)
		}
		if left := from.PTTL(ctx, key).Val(); left > 0 {
			to.PExpire(ctx, key, left)
		}
	}
}

// failOver makes the other server the master, and has p in use until its Client knows that.
func (m *masters) failOver(t *testing.T, p *holdfast.Client) {
	m.master.Store(1 - m.master.Load())
	for range 6 {
		if l, err := p.Mutex("in use").TryLock(t.Context()); err == nil {
			_ = l.Release(t.Context())
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// A failover forgets a release, and later a grant: a planned one behind Sentinel does so each time. The lock
// whose owner has released it is free soon, and who has lost one is notified soon, and not a lease or a third
// of one later.
func TestAnotherMasterHasForgotten(t *testing.T) {
	for _, kind := range lockertest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			onMasters(t, func(t *testing.T, m *masters, p, q *holdfast.Client) {
				mine, theirs := contenders(t, kind, "k", p, q)
				l, err := mine.Lock(t.Context())
				redistest.Must(t, err)
				m.replicate(t)
				redistest.Must(t, l.Release(t.Context()))
				m.failOver(t, p)
				began := time.Now()
				held, err := theirs.Lock(t.Context())
				if took := time.Since(began); err != nil || took > 2*time.Second {
					t.Fatalf("after a release that was forgotten: %v after %v", err, took)
				}

				m.failOver(t, q) // the former master knows nothing of it
				redistest.Is(t, "after a grant that was forgotten", held.Err(), holdfast.ErrLost)
			})
		})
	}
}

// A failover forgets nothing, but messages come from another server now. A waiter hears of a release.
func TestAWaiterHearsTheNewMaster(t *testing.T) {
	for _, kind := range lockertest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			onMasters(t, func(t *testing.T, m *masters, p, q *holdfast.Client) {
				mine, theirs := contenders(t, kind, "k", p, q)
				l, err := mine.Lock(t.Context())
				redistest.Must(t, err)
				granted := make(chan time.Time, 1)
				go func() {
					if l, err := theirs.Lock(t.Context()); err == nil {
						granted <- time.Now()
						_ = l.Release(t.Context())
					}
				}()
				time.Sleep(time.Second)
				m.replicate(t)
				m.failOver(t, p)
				redistest.Must(t, l.Release(t.Context()))
				released := time.Now()
				if took := (<-granted).Sub(released); took > 100*time.Millisecond {
					t.Errorf("granted %v after the release", took)
				}
				time.Sleep(time.Second)
			})
		})
	}
}
