// These tests show on real servers, by outcomes alone, what a quorum promises when some are frozen,
// killed or restarted without their data.

package quorum_test

import (
	"errors"
	"math/bits"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// Servers are frozen, one set after the other: a quorum is granted by a majority, and what the others
// granted is free again.
func TestMajorityOfFiveServers(t *testing.T) {
	servers, clients := redises.Real(t, 5)
	q := holdfast.NewQuorum(name, clients())
	first, err := q.Lock(clienttest.Generous(t))
	if err != nil {
		t.Fatal(err)
	}
	redises.Release(t, first)
	last := first.Token()
	for _, mask := range []int{0b11111, 0b01111, 0b10101, 0b00111, 0b11000, 0b00001} {
		redises.FreezeAllBut(servers, mask)
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
		redises.Free(t, servers, mask)
		for _, s := range servers {
			s.Thaw()
		}
		redises.Free(t, servers, 0b11111)
	}
}

// Two of five servers are killed, and the quorum is granted by the others. Then those two are back, and a
// third restarts, all without their data: a majority knows nothing of the holder. It lets nobody in before
// the holder is told of its loss.
func TestReal_QuorumOfKilledServers(t *testing.T) {
	servers, clients := redises.Real(t, 5)
	how := holdfast.Renewed(10 * time.Second)
	q, other := holdfast.NewQuorum(name, clients(), how), holdfast.NewQuorum(name, clients(), how)
	first, err := q.Lock(clienttest.Generous(t))
	if err != nil {
		t.Fatal(err)
	}
	redises.Release(t, first)
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
		redises.Release(t, next)
		break
	}
	world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
}
