// These tests are about quorums that share only some servers, or that give the servers different
// addresses.

package multilock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/multilock"
)

// on returns the quorum of that name on some of the process's servers.
func (p *process) on(name string, servers ...int) *multilock.Quorum {
	clients := make([]*holdfast.Client, len(servers))
	for i, server := range servers {
		clients[i] = p.clients[server]
	}
	return holdfast.NewQuorum(name, clients)
}

// A server loses its data, and then a quorum with other servers begins on it. That does not make
// the server count again for its old quorum.
func TestQuorum_BeginsBesideAnother(t *testing.T) {
	play(t, 5, func(t *testing.T, w *redises) {
		p, other := w.process(), w.process()
		release(t, w.lock(p.on(name, 0, 1, 2)))
		p.unplug(2)
		held := w.lock(p.on(name, 0, 1, 2)) // on 0 and 1
		ctx := held.Context(t.Context())
		w.restartEmpty(0)
		lost := w.now()
		begins := w.lock(other.on("stock", 0, 3, 4)) // none of these has a marker
		release(t, begins)

		_, err := other.on(name, 0, 1, 2).TryLock(t.Context()) // 0 and 2 would be a majority
		world.WantErr(t, err, holdfast.ErrBusy)
		wantLive(t, held, ctx)

		next := w.lock(other.on(name, 0, 1, 2))
		if held.Err() == nil {
			t.Error("two hold it")
		}
		if next.Token() <= held.Token() {
			t.Errorf("token %d after %d", next.Token(), held.Token())
		}
		release(t, next)
		other.unplug(1) // 0 is needed
		release(t, w.lock(other.on(name, 0, 1, 2)))
		if since := w.now() - lost; since < 30*time.Second {
			t.Errorf("the server that lost its data counts again after %v", since)
		}
		p.plug(2)
	})
}

// Quorums with different names may share servers: they do not exclude each other, and each works.
func TestQuorum_SharesServers(t *testing.T) {
	play(t, 5, func(t *testing.T, w *redises) {
		p, other := w.process(), w.process()
		a := w.lock(p.on(name, 0, 1, 2))
		b := w.lock(other.on("stock", 2, 3, 4))
		_, err := other.on(name, 2, 1, 0).TryLock(t.Context()) // in another order
		world.WantErr(t, err, holdfast.ErrBusy)
		release(t, a)
		release(t, b)
		release(t, w.lock(other.on(name, 0, 1, 2)))
		if w.now() > 2*time.Minute {
			t.Errorf("it took %v", w.now())
		}
	})
}

// A process gives the servers other addresses than the process that began the quorum. If the quorum
// has just begun, the process waits for the longest lease. After that it locks as usual.
func TestQuorum_OtherAddresses(t *testing.T) {
	play(t, 3, func(t *testing.T, w *redises) {
		p := w.began()
		q := w.processAt(func(i int) string { return fmt.Sprintf("alias%d:6379", i) })
		_, err := q.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrNoQuorum)
		l := w.lock(q.quorum())
		if w.now() < 30*time.Second || w.now() > 33*time.Second {
			t.Errorf("granted after %v", w.now())
		}
		_, err = p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		release(t, l)

		// Both processes keep out a server that loses its data.
		q.unplug(2)
		l = w.lock(q.quorum()) // on 0 and 1
		w.restartEmpty(1)
		_, err = p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		q.plug(2)
	})
}

// countsAfterALease fails the test unless a server that the process's quorum needs counts after the longest
// lease, and no sooner.
func (w *redises) countsAfterALease(p *process) {
	w.t.Helper()
	began := w.now()
	release(w.t, w.lock(p.quorum()))
	world.Within(w.t, "it counts again", w.now()-began, 28*time.Second, 32*time.Second)
}

// A server's clock was set back, so its marker is ahead of its clock. The marker keeps the server
// out for the longest lease and no longer.
func TestQuorum_MarkerAheadOfTheClock(t *testing.T) {
	play(t, 3, func(t *testing.T, w *redises) {
		p := w.began()
		time.Sleep(3 * time.Second) // after this the quorum no longer begins
		w.servers[2].SetTime(time.Now().Add(30 * 24 * time.Hour))
		w.restartEmpty(2)
		release(t, w.lock(p.quorum())) // marks server 2 as lost, a month ahead
		w.servers[2].SetTime(time.Time{})
		if markers := w.markers(); markers[2] != "lost" {
			t.Fatalf("the markers are %q", markers)
		}
		release(t, w.lock(p.quorum()))
		p.unplug(0) // 2 is needed
		w.countsAfterALease(p)
	})
}

// One server has a marker of the future. The quorum still finds that another server has lost its
// data. Otherwise the other server would be out of the quorum until that future time.
func TestQuorum_BeganAheadOfTheClock(t *testing.T) {
	play(t, 3, func(t *testing.T, w *redises) {
		p := w.process()
		w.servers[0].SetTime(time.Now().Add(30 * 24 * time.Hour))
		release(t, w.lock(p.quorum()))
		w.servers[0].SetTime(time.Time{})
		w.restartEmpty(1)
		release(t, w.lock(p.quorum()))
		p.unplug(2) // 1 is needed
		w.countsAfterALease(p)
	})
}

// A machine reboots: its server has no data, and soon after that its clock, which was behind, is set forward. Who
// has seen the server empty waits for the longest lease by its own clock.
func TestQuorum_ClockSetForwardAfterARestart(t *testing.T) {
	play(t, 3, func(t *testing.T, w *redises) {
		a, b := w.began(), w.process()
		a.unplug(2)
		time.Sleep(3 * time.Second) // after this the quorum no longer begins
		l := w.lock(a.quorum())     // on servers 0 and 1
		w.restartEmpty(1)
		_, err := b.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		w.servers[1].SetTime(time.Now().Add(40 * time.Second))
		if next, err := b.quorum().TryLock(t.Context()); err == nil {
			t.Errorf("two hold it: %v", l.Err())
			release(t, next)
		}
		w.servers[1].SetTime(time.Time{})
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
	})
}

// A quorum of the same servers in another order is the same lock.
func TestQuorum_ReentersInAnyOrder(t *testing.T) {
	play(t, 3, func(t *testing.T, w *redises) {
		p := w.began()
		l := w.lock(p.on(name, 0, 1, 2))
		inner, err := p.on(name, 2, 0, 1).TryLock(l.Context(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		if inner.Token() != l.Token() {
			t.Errorf("token %d, want %d", inner.Token(), l.Token())
		}
		release(t, inner)
		wantLive(t, l, l.Context(t.Context()))
		release(t, l)
	})
}

// Two Clients of one server do not count as two servers, whatever databases they use.
func TestQuorum_OneServerTwice(t *testing.T) {
	play(t, 3, func(t *testing.T, w *redises) {
		clients := w.process().clients
		for _, db := range []int{0, 3} {
			again := w.servers[0].Proxy().Client(t, func(o *redis.Options) { o.Addr, o.DB = "server0:6379", db })
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
