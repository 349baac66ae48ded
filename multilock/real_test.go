// These tests show on real servers, by outcomes alone, what locks on several of them promise when some
// are frozen, killed or restarted without their data.

package multilock_test

import (
	"context"
	"errors"
	"math/bits"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// realServers starts n servers. clients makes a Client for each, as one process has them.
func realServers(t *testing.T, n int) (servers []*redistest.Proc, clients func() []*holdfast.Client) {
	t.Helper()
	for range n {
		servers = append(servers, redistest.Server(t))
	}
	return servers, func() (all []*holdfast.Client) {
		for _, s := range servers {
			rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
			t.Cleanup(func() { _ = rdb.Close() })
			all = append(all, clienttest.OpenClient(t, rdb))
		}
		return all
	}
}

// free waits until name is free on every server that answers.
func free(t *testing.T, servers []*redistest.Proc, mask int) {
	t.Helper()
	for i, s := range servers {
		if mask&(1<<i) != 0 {
			redistest.Eventually(t, time.Minute, "free", func() error {
				if n, err := s.Admin().Exists(t.Context(), name).Result(); err != nil || n > 0 {
					return holdfast.ErrBusy
				}
				return nil
			})
		}
	}
}

// Servers are frozen, one set after the other: a quorum is granted by a majority, a MultiLock by all, and
// what the others granted is free again.
func TestMajorityOfFiveServers(t *testing.T) {
	servers, clients := realServers(t, 5)
	c := clients()
	lockers := make([]holdfast.Locker, len(c))
	for i := range c {
		lockers[i] = c[i].Mutex(name)
	}
	q, m := holdfast.NewQuorum(name, c), holdfast.NewMultiLock(lockers...)
	first, err := q.Lock(clienttest.Generous(t))
	if err != nil {
		t.Fatal(err)
	}
	release(t, first)
	last := first.Token()
	for _, mask := range []int{0b11111, 0b01111, 0b10101, 0b00111, 0b11000, 0b00001} {
		for i, s := range servers {
			if mask&(1<<i) == 0 {
				s.Freeze()
			}
		}
		most := bits.OnesCount(uint(mask)) >= 3
		lock := q.Lock
		if !most {
			lock = q.TryLock // there is no majority to wait for
		}
		l, err := lock(clienttest.Generous(t))
		if (err == nil) != most || err != nil && !errors.Is(err, holdfast.ErrNoQuorum) {
			t.Errorf("%05b: %v", mask, err)
		}
		if err == nil {
			if l.Token() <= last {
				t.Errorf("%05b: token %d after %d", mask, l.Token(), last)
			}
			last = l.Token()
			_ = l.Release(t.Context())
		}
		free(t, servers, mask)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		if mask == 0b11111 {
			ctx = clienttest.Generous(t)
		}
		all, err := m.Lock(ctx)
		cancel()
		if (err == nil) != (mask == 0b11111) {
			t.Errorf("%05b, all: %v", mask, err)
		}
		if err == nil {
			release(t, all)
		}
		free(t, servers, mask)
		for _, s := range servers {
			s.Thaw()
		}
		free(t, servers, 0b11111)
	}
}

// Two of five servers are killed, and the quorum is granted by the others. Then those two are back, and a
// third restarts, all without their data: a majority knows nothing of the holder. It lets nobody in before
// the holder is told of its loss.
func TestReal_QuorumOfKilledServers(t *testing.T) {
	servers, clients := realServers(t, 5)
	how := holdfast.Renewed(10 * time.Second)
	q, other := holdfast.NewQuorum(name, clients(), how), holdfast.NewQuorum(name, clients(), how)
	first, err := q.Lock(clienttest.Generous(t))
	if err != nil {
		t.Fatal(err)
	}
	release(t, first)
	redistest.Eventually(t, time.Minute, "the markers", func() error {
		for _, s := range servers {
			if n, err := s.Admin().Exists(t.Context(), markerKey).Result(); n == 0 || err != nil {
				return errors.Join(err, holdfast.ErrNoQuorum)
			}
		}
		return nil
	})
	servers[0].Kill()
	servers[1].Kill()
	l, err := q.Lock(clienttest.Generous(t)) // on 2, 3 and 4
	if err != nil {
		t.Fatal(err)
	}
	servers[0].Restart(false)
	servers[1].Restart(false)
	servers[4].Restart(false)
	for tries := 0; ; tries++ {
		next, err := other.TryLock(clienttest.Generous(t))
		if err != nil {
			if tries > 3000 {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if l.Err() == nil && time.Now().Before(l.Deadline()) || next.Token() <= l.Token() {
			t.Errorf("another is in with the token %d beside %d, which says: %v", next.Token(), l.Token(), l.Err())
		}
		release(t, next)
		break
	}
	world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
}
