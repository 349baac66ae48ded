package measure

import (
	"math"
	"testing"
)

func TestMedianIsTheMiddle(t *testing.T) {
	for _, tc := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0}, {[]float64{7}, 7}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 9, 2}, 3},
	} {
		if got := Median(tc.values); got != tc.want {
			t.Errorf("Median(%v) = %v, want %v", tc.values, got, tc.want)
		}
	}
}

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
