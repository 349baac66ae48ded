// On a cluster, messages go by sharded channels in both languages.

package interop

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// On a cluster, a Redisson without sharded channels excludes Go, and Go excludes it. But neither
// language hears the other.
func TestExclusionOnAClusterWithoutShardedChannels(t *testing.T) {
	eachVersion(t, Oldest, func(t *testing.T, version string) {
		if !older(version, sharding) {
			t.Skip("it has sharded channels")
		}
		w := newWorld(t, version, "cluster")
		p := mutexPair
		p.deaf, p.lease = true, deafLease
		w.exclude(p)
	})
}

// A Redisson that was told not to use sharded channels still excludes Go, and Go excludes it. But
// neither language hears the other: Redisson's waiters wait for the end of a lease, and Go's
// waiters wait for a poll.
func TestClassicChannelsOnACluster(t *testing.T) {
	eachVersion(t, "3.29", func(t *testing.T, version string) {
		w := newWorld(t, version, "cluster")
		thread := w.redisson("r", "sharded=OFF").Thread("t")
		m := w.holdfast(holdfast.WithDefaults(holdfast.Fixed(lease))).Mutex("deaf")
		w.do(thread, "lock.lock", "deaf")
		granted := w.asks(m.Lock)
		released := time.Now()
		w.do(thread, "lock.unlock", "deaf")
		l := w.granted("Go's grant", granted)
		w.soon("Go was in after", time.Since(released), poll+late)

		w.sleepsThroughTheRelease(thread, "deaf", l)
	})
}
