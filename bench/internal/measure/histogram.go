// A histogram keeps many durations in little memory.

package measure

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	subBits    = 7 // 128 buckets for each doubling: 0.8 % wide
	subBuckets = 1 << subBits
	octaves    = 40 // up to 18 minutes
)

// Histogram counts durations in buckets that are 0.8 % wide. Any number of goroutines may add
// durations at the same time, and adding allocates nothing. The zero value is empty.
type Histogram struct {
	counts [octaves * subBuckets]atomic.Int64
}

// Add counts one duration.
func (h *Histogram) Add(d time.Duration) {
	h.counts[bucketOf(d)].Add(1)
}

// Reset empties the histogram.
func (h *Histogram) Reset() {
	for i := range h.counts {
		h.counts[i].Store(0)
	}
}

// Buckets returns the number of durations in each bucket that is not empty.
func (h *Histogram) Buckets() map[int]int64 {
	buckets := make(map[int]int64)
	for i := range h.counts {
		if n := h.counts[i].Load(); n > 0 {
			buckets[i] = n
		}
	}
	return buckets
}

// bucketOf returns the bucket of a duration. Below 2^subBits ns each nanosecond has its own bucket.
// Above that, each doubling has the same number of buckets.
func bucketOf(d time.Duration) int {
	ns := uint64(max(d, 0))
	if ns < subBuckets {
		return int(ns)
	}
	shift := bits.Len64(ns) - 1 - subBits
	return min((shift+1)*subBuckets+int(ns>>shift)-subBuckets, octaves*subBuckets-1)
}

// bounds returns the bounds of a bucket in ns: it counts the durations from low up to high.
func bounds(bucket int) (low, high float64) {
	if bucket < subBuckets {
		return float64(bucket), float64(bucket + 1)
	}
	shift := bucket/subBuckets - 1
	ns := uint64(subBuckets+bucket%subBuckets) << shift
	return float64(ns), float64(ns + 1<<shift)
}

// Quantile returns the duration below which that share of the durations in the buckets lies. It
// returns 0 if there are no durations.
func Quantile(buckets map[int]int64, share float64) time.Duration {
	var all int64
	for _, n := range buckets {
		all += n
	}
	rank, below := share*float64(all), 0.0
	for bucket := range octaves * subBuckets {
		n := float64(buckets[bucket])
		if n > 0 && below+n >= rank {
			low, high := bounds(bucket)
			return time.Duration(low + (high-low)*(rank-below)/n)
		}
		below += n
	}
	return 0
}
