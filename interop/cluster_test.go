// On a cluster, messages go by sharded channels in both languages.

package interop

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// inCluster has the kinds for which the languages contend on a cluster.
var inCluster = []string{"Mutex / RLock", "RWMutex / RReadWriteLock, writers", "Semaphore(3) / RSemaphore",
	"PermitSemaphore(3) / RPermitExpirable..."}

// On a cluster, a Redisson without sharded channels excludes Go, and Go excludes it. But neither
// language hears the other.
func TestExclusionOnAClusterWithoutShardedChannels(t *testing.T) {
	eachVersion(t, Oldest, func(t *testing.T, version string) {
		if !older(version, sharding) {
			t.Skip("it has sharded channels")
		}
		w := newClusterWorld(t, version)
		p := mutexPair
		p.deaf, p.lease = true, deafLease
		w.exclude(p)
	})
}

func TestExclusionOnACluster(t *testing.T) {
	onACluster(t, Last3, func(t *testing.T, w *world) {
		for _, name := range inCluster {
			for _, p := range pairs {
				if p.name == name {
					w.exclude(p)
				}
			}
		}
	})
}

func TestAReleaseWakesTheOtherLanguageOnACluster(t *testing.T) {
	onACluster(t, Last3, func(t *testing.T, w *world) {
		client, thread := w.holdfast(), w.redisson("r").Thread("t")
		for _, c := range wakeUps {
			if older(w.version, c.since) {
				continue
			}
			redistest.Must(t, w.rdb.Del(w.ctx, "woken", "{woken}:timeout").Err())
			if c.setUp != nil {
				c.setUp(w, client, "woken")
			}
			rounds := redistest.Count(t, 300)
			w.wokenInGo(c.name, c.hold, c.want, client, thread, rounds)
			w.wokenInJava(c.name, c.hold, c.want, client, thread, rounds)
		}
	})
}

// Both languages wait for a latch, and both wake whichever language counts last.
func TestALatchOnACluster(t *testing.T) {
	onACluster(t, Last3, func(t *testing.T, w *world) {
		w.latchRounds(redistest.Count(t, 300))
	})
}

// A Redisson that was told not to use sharded channels still excludes Go, and Go excludes it. But
// neither language hears the other: Redisson's waiters wait for the end of a lease, and Go's
// waiters wait for a poll.
func TestClassicChannelsOnACluster(t *testing.T) {
	eachVersion(t, "3.29", func(t *testing.T, version string) {
		w := newClusterWorld(t, version)
		thread := w.redisson("r", "sharded=OFF").Thread("t")
		m := w.holdfast(holdfast.WithDefaults(holdfast.Fixed(lease))).Mutex("deaf")
		w.do(thread, "lock.lock", "deaf")
		granted := w.asks(m.Lock)
		released := time.Now()
		w.do(thread, "lock.unlock", "deaf")
		l := w.granted("Go's grant", granted)
		w.soon("Go was in after", time.Since(released), poll+late)

		over := time.Now().Add(w.ttl("deaf"))
		waiting := w.sleeps(thread, "lock.lock", "deaf")
		w.parked()
		redistest.Must(t, l.Release(w.ctx))
		w.result(waiting)
		if w.inWhenOver(waiting.At(), over); waiting.At().Before(over.Add(-lease / 2)) {
			t.Error("Java heard a message: say so in docs/redisson-interop.md")
		}
		w.do(thread, "lock.unlock", "deaf")
	})
}
