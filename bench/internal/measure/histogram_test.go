package measure

import (
	"math"
	"testing"
	"time"
)

func TestABucketHoldsWhatFallsIntoIt(t *testing.T) {
	for _, d := range []time.Duration{0, 1, 127, 128, 129, 1000, 65_535, 65_536, time.Millisecond, time.Second, 15 * time.Minute} {
		low, high := bounds(bucketOf(d))
		if float64(d) < low || float64(d) >= high {
			t.Errorf("%v is in a bucket from %v to %v ns", d, low, high)
		}
		if width := (high - low) / math.Max(float64(d), subBuckets); width > 0.008 {
			t.Errorf("the bucket of %v is %.4f of it wide", d, width)
		}
	}
	if got, want := bucketOf(100*time.Hour), octaves*subBuckets-1; got != want {
		t.Errorf("what is longer than all buckets is in %d, want the last, %d", got, want)
	}
	if got := bucketOf(-time.Second); got != 0 {
		t.Errorf("what is less than nothing is in %d, want 0", got)
	}
}

func TestQuantilesOfEvenlySpreadDurations(t *testing.T) {
	var h Histogram
	for i := range 10_000 {
		h.Add(time.Duration(i) * time.Microsecond)
	}
	for _, share := range []float64{0.01, 0.5, 0.99, 1} {
		got, want := Quantile(h.Buckets(), share), time.Duration(share*1e4)*time.Microsecond
		if off := math.Abs(float64(got-want)) / float64(want); off > 0.01 {
			t.Errorf("Quantile(%v) = %v, want %v", share, got, want)
		}
	}
	h.Reset()
	if got := Quantile(h.Buckets(), 0.5); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
}
