// What is made of measured values: buckets, quantiles, intervals, medians, shares; and what a meter counts.

package measure

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestJainTellsEvenSharesFromUnevenOnes(t *testing.T) {
	for _, tc := range []struct {
		shares  []int64
		want    float64
		starved int
	}{
		{[]int64{5, 5, 5, 5}, 1, 0},
		{[]int64{20, 0, 0, 0}, 0.25, 3},
		{[]int64{10, 10, 0, 0}, 0.5, 2},
		{[]int64{0, 0}, 0, 2},
		{nil, 0, 0},
	} {
		if got := Jain(tc.shares); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("Jain(%v) = %v, want %v", tc.shares, got, tc.want)
		}
		if got := Starved(tc.shares); got != tc.starved {
			t.Errorf("Starved(%v) = %d, want %d", tc.shares, got, tc.starved)
		}
	}
}

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

// An interval of nine rounds leaves out the outermost. Fewer rounds have none.
func TestInterval(t *testing.T) {
	for _, tc := range []struct {
		values    []float64
		low, high float64
		ok        bool
	}{
		{[]float64{9, 1, 8, 2, 7, 3, 6, 4, 5}, 2, 8, true},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, 2, 8, true},
		{[]float64{3, 1, 2}, 1, 3, false},
		{nil, 0, 0, false},
	} {
		if low, high, ok := Interval(tc.values); low != tc.low || high != tc.high || ok != tc.ok {
			t.Errorf("Interval(%v) = %v to %v, %v", tc.values, low, high, ok)
		}
	}
}

func TestAMeterCountsWhileItsWindowIsOpen(t *testing.T) {
	var m Meter
	one, other := m.Worker(), m.Worker()
	one.Did(3)
	m.Took(time.Second)
	m.Open()
	one.Did(2)
	m.Took(time.Millisecond)
	m.Close()
	other.Did(1)
	m.Took(time.Second)
	m.Set("own", 7)

	part := m.Part()
	if want := []int64{2, 0}; !slices.Equal(part.Done, want) {
		t.Errorf("done: %v, want %v", part.Done, want)
	}
	if got := Quantile(part.Durations, 1); len(part.Durations) != 1 || got > 2*time.Millisecond {
		t.Errorf("durations: %v", part.Durations)
	}
	if part.Figures["own"] != 7 {
		t.Errorf("figures: %v", part.Figures)
	}
	var idle Meter
	idle.Bystander()
	idle.Open()
	idle.Close()
	if used := idle.Part().Usage; used != (Usage{}) {
		t.Errorf("a bystander has used %+v", used)
	}
}

func TestCommandsAreThoseThatClientsSent(t *testing.T) {
	const info = "# Commandstats\r\n" +
		"cmdstat_evalsha:calls=10,usec=99,usec_per_call=9.90,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_set:calls=7,usec=1,usec_per_call=0.14,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_ping:calls=2,usec=1,usec_per_call=0.50,rejected_calls=0,failed_calls=0\r\n"
	if got := commands(info, nil); got != 12 {
		t.Errorf("of one who sends scripts: %v commands, want 12", got)
	}
	if got := commands(info, []string{"set"}); got != 19 {
		t.Errorf("of one who sends SET too: %v commands, want 19", got)
	}
}
