// This test shows on real servers, by outcomes alone, what a quorum promises when some are killed or restarted without
// their data.

package quorum_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

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
