// Quorums that share only some servers, or that give the servers different addresses; and their tokens, which grow whatever
// happens to the servers.

package quorum_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/quorum"
)

// on returns the quorum of that name on some of the process's servers.
func (p *process) on(name string, servers ...int) *quorum.Quorum {
	clients := make([]*holdfast.Client, len(servers))
	for i, server := range servers {
		clients[i] = p.Clients[server]
	}
	return holdfast.NewQuorum(name, clients)
}

// A server loses its data, and then a quorum with other servers begins on it. That does not make
// the server count again for its old quorum.
func TestQuorum_BeginsBesideAnother(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		p, other := w.process(), w.process()
		redises.Release(t, w.lock(p.on(name, 0, 1, 2)))
		p.Unplug(2)
		held := w.lock(p.on(name, 0, 1, 2)) // on 0 and 1
		ctx := held.Context(t.Context())
		w.RestartEmpty(0)
		lost := w.Now()
		begins := w.lock(other.on("stock", 0, 3, 4)) // none of these has a marker
		redises.Release(t, begins)

		_, err := other.on(name, 0, 1, 2).TryLock(t.Context()) // 0 and 2 would be a majority
		world.WantErr(t, err, holdfast.ErrBusy)
		redises.WantLive(t, held, ctx)

		next := w.lock(other.on(name, 0, 1, 2))
		if held.Err() == nil {
			t.Error("two hold it")
		}
		if next.Token() <= held.Token() {
			t.Errorf("token %d after %d", next.Token(), held.Token())
		}
		redises.Release(t, next)
		other.Unplug(1) // 0 is needed
		redises.Release(t, w.lock(other.on(name, 0, 1, 2)))
		if since := w.Now() - lost; since < 30*time.Second {
			t.Errorf("the server that lost its data counts again after %v", since)
		}
		p.Plug(2)
	})
}

// A process gives the servers other addresses than the process that began the quorum. If the quorum
// has just begun, the process waits for the longest lease. After that it locks as usual.
func TestQuorum_OtherAddresses(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.began()
		q := &process{w.ProcessAt(func(i int) string { return fmt.Sprintf("alias%d:6379", i) })}
		_, err := q.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrNoQuorum)
		l := w.lock(q.quorum())
		if w.Now() < 30*time.Second || w.Now() > 33*time.Second {
			t.Errorf("granted after %v", w.Now())
		}
		world.WantErr(t, redistest.Err(p.quorum().TryLock(t.Context())), holdfast.ErrBusy)
		redises.Release(t, l)

		// Both processes keep out a server that loses its data.
		q.Unplug(2)
		l = w.lock(q.quorum()) // on 0 and 1
		w.RestartEmpty(1)
		world.WantErr(t, redistest.Err(p.quorum().TryLock(t.Context())), holdfast.ErrBusy)
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		q.Plug(2)
	})
}

// countsAfterALease fails the test unless a server that the process's quorum needs counts after the longest
// lease, and no sooner.
func (w *stage) countsAfterALease(p *process) {
	w.T.Helper()
	began := w.Now()
	redises.Release(w.T, w.lock(p.quorum()))
	world.Within(w.T, "it counts again", w.Now()-began, 28*time.Second, 32*time.Second)
}

// A server's clock was set back, so its marker is ahead of its clock. The marker keeps the server
// out for the longest lease and no longer.
func TestQuorum_MarkerAheadOfTheClock(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.began()
		time.Sleep(3 * time.Second) // after this the quorum no longer begins
		w.Servers[2].SetTime(time.Now().Add(30 * 24 * time.Hour))
		w.RestartEmpty(2)
		redises.Release(t, w.lock(p.quorum())) // marks server 2 as lost, a month ahead
		w.Servers[2].SetTime(time.Time{})
		if markers := w.markers(); markers[2] != "lost" {
			t.Fatalf("the markers are %q", markers)
		}
		redises.Release(t, w.lock(p.quorum()))
		p.Unplug(0) // 2 is needed
		w.countsAfterALease(p)
	})
}

// One server has a marker of the future. The quorum still finds that another server has lost its
// data. Otherwise the other server would be out of the quorum until that future time.
func TestQuorum_BeganAheadOfTheClock(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.process()
		w.Servers[0].SetTime(time.Now().Add(30 * 24 * time.Hour))
		redises.Release(t, w.lock(p.quorum()))
		w.Servers[0].SetTime(time.Time{})
		w.RestartEmpty(1)
		redises.Release(t, w.lock(p.quorum()))
		p.Unplug(2) // 1 is needed
		w.countsAfterALease(p)
	})
}

// A machine reboots: its server has no data, and soon after that its clock, which was behind, is set forward. Who
// has seen the server empty waits for the longest lease by its own clock.
func TestQuorum_ClockSetForwardAfterARestart(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		a, b := w.began(), w.process()
		a.Unplug(2)
		time.Sleep(3 * time.Second) // after this the quorum no longer begins
		l := w.lock(a.quorum())     // on servers 0 and 1
		w.RestartEmpty(1)
		world.WantErr(t, redistest.Err(b.quorum().TryLock(t.Context())), holdfast.ErrBusy)
		w.Servers[1].SetTime(time.Now().Add(40 * time.Second))
		if next, err := b.quorum().TryLock(t.Context()); err == nil {
			t.Errorf("two hold it: %v", l.Err())
			redises.Release(t, next)
		}
		w.Servers[1].SetTime(time.Time{})
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
	})
}

// A quorum of the same servers in another order is the same lock.
func TestQuorum_ReentersInAnyOrder(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.began()
		l := w.lock(p.on(name, 0, 1, 2))
		inner, err := p.on(name, 2, 0, 1).TryLock(l.Context(t.Context()))
		redistest.Must(t, err)
		world.Equal(t, inner.Token(), l.Token(), "token %d, want %d", l.Token())
		redises.Release(t, inner)
		redises.WantLive(t, l, l.Context(t.Context()))
		redises.Release(t, l)
	})
}

// Two Clients of one server do not count as two servers, whatever databases they use.
func TestQuorum_OneServerTwice(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		clients := w.process().Clients
		for _, db := range []int{0, 3} {
			again := w.Servers[0].Proxy().Client(t, func(o *redis.Options) { o.Addr, o.DB = "server0:6379", db })
			c := holdfast.New(again)
			t.Cleanup(func() { c.Close() })
			_, err := holdfast.NewQuorum(name, append(clients[:2:2], c)).TryLock(t.Context())
			world.WantErr(t, err, holdfast.ErrBadArgument)
			if err == nil || !strings.Contains(err.Error(), "server0:6379") {
				t.Errorf("it does not say which: %v", err)
			}
		}
	})
}

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
			for _, s := range w.Servers {
				text, _ := s.Get(tokenKey)
				if token, _ := strconv.ParseInt(text, 10, 64); token >= last {
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

// A writer that only one server granted leaves a token there. A reader that has seen this token shows it to the
// resource. So the next reader, which other servers grant, must not have an older token.
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
