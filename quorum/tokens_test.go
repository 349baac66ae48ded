// The token of a Quorum grows whatever happens to its servers.

package quorum_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/lease"
)

// The token grows whatever majority grants it, even where the servers' clocks are far apart.
func TestQuorum_TokenGrowsOverMajorities(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		p := w.began()
		ahead := time.Now().Add(48 * time.Hour).UnixMicro()
		w.Servers[0].Set(tokenKey, strconv.FormatInt(ahead, 10)) // as if its clock had been there
		last := int64(0)
		for _, majority := range [][]int{{0, 1, 2}, {2, 3, 4}, {1, 3, 4}, {0, 2, 4}, {1, 2, 3}} {
			for i := range p.Clients {
				if slices.Contains(majority, i) {
					p.Plug(i)
				} else {
					p.Unplug(i)
				}
			}
			l := w.lock(p.quorum())
			if l.Token() <= last || l.Token() <= ahead {
				t.Errorf("by %v: token %d after %d", majority, l.Token(), last)
			}
			last = l.Token()
			known := 0
			for i := range w.Servers {
				if w.token(i) >= last {
					known++
				}
			}
			if known < 3 {
				t.Errorf("by %v: %d servers know it", majority, known)
			}
			if ttl := w.Servers[majority[0]].TTL(tokenKey); majority[0] != 0 && ttl < 7*24*time.Hour-time.Second {
				t.Errorf("it is kept for %v", ttl)
			}
			redises.Release(t, l)
		}
	})
}

// One server's clock was far ahead, and then nobody locks for days. The token grows all the same.
func TestQuorum_TokenAheadOfTheClocks(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		last := int64(0)
		w.began()
		w.Servers[0].SetTime(time.Now().Add(9 * 24 * time.Hour))
		for _, days := range []int{0, 8, 2} {
			time.Sleep(time.Duration(days) * 24 * time.Hour)
			p := w.process()
			if days > 0 {
				p.Unplug(0)
			}
			l := w.lock(p.quorum())
			if l.Token() <= last {
				t.Errorf("after %d days: token %d after %d", days, l.Token(), last)
			}
			last = l.Token()
			redises.Release(t, l)
			for i, c := range p.Clients {
				c.Close() // so that nothing happens in the days to come
				p.Plug(i)
			}
		}
	})
}

// A writer that only one server granted leaves a token there. A reader that has seen this token
// shows it to the resource. So the next reader, which other servers grant, must not have an older
// token.
func TestQuorum_TokensOfReadersDoNotGoBack(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.began()
		readers := holdfast.NewQuorumOf(name, p.Clients, lease.DefaultLease, func(c *holdfast.Client) holdfast.Locker {
			return c.RWMutex(name).RLocker()
		})
		left := time.Now().Add(time.Hour).UnixMicro()
		w.Servers[0].Set(tokenKey, strconv.FormatInt(left, 10))
		for _, down := range []int{2, 0} {
			p.Unplug(down)
			l := w.lock(readers)
			if l.Token() < left {
				t.Errorf("with server %d down: token %d after %d", down, l.Token(), left)
			}
			redises.Release(t, l)
			p.Plug(down)
		}
	})
}
