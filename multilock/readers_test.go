// The tokens of a quorum of read sides do not go back either.

package multilock_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lease"
)

// A writer that only one server granted leaves a token there. A reader that has seen this token
// shows it to the resource. So the next reader, which other servers grant, must not have an older
// token.
func TestQuorum_TokensOfReadersDoNotGoBack(t *testing.T) {
	play(t, 3, func(t *testing.T, w *redises) {
		p := w.began()
		readers := holdfast.NewQuorumOf(name, p.clients, lease.DefaultLease, func(c *holdfast.Client) holdfast.Locker {
			return c.RWMutex(name).RLocker()
		})
		left := time.Now().Add(time.Hour).UnixMicro()
		w.servers[0].Set(tokenKey, strconv.FormatInt(left, 10))
		for _, down := range []int{2, 0} {
			p.unplug(down)
			l := w.lock(readers)
			if l.Token() < left {
				t.Errorf("with server %d down: token %d after %d", down, l.Token(), left)
			}
			release(t, l)
			p.plug(down)
		}
	})
}
