// This file says how well a few rounds know a median.

package measure

import (
	"math/rand/v2"
	"slices"
)

// resamples is how many samples Interval draws. With so many the ends of an interval do not depend
// on the seed.
const resamples = 10_000

// LeastRounds is the least number of values for which there is a 95 % interval of their median. Of
// five values, even the range from the least to the largest misses the median in 6 of 100 cases.
const LeastRounds = 6

// Interval returns the 95 % confidence interval of the median of the values, by the percentile
// bootstrap: it draws as many values as there are, with replacement, very often, and leaves out
// 2.5 % of the medians at each end. The seed is fixed, so equal values give an equal interval. ok
// is false if there are fewer than LeastRounds values; low and high are then the least and the
// largest value.
func Interval(values []float64) (low, high float64, ok bool) {
	n := len(values)
	if n == 0 {
		return 0, 0, false
	}
	if n < LeastRounds {
		return slices.Min(values), slices.Max(values), false
	}
	sorted := slices.Sorted(slices.Values(values)) // their order has no meaning
	r := rand.New(rand.NewPCG(1, 2))
	medians, drawn := make([]float64, resamples), make([]float64, n)
	for i := range medians {
		for j := range drawn {
			drawn[j] = sorted[r.IntN(n)]
		}
		medians[i] = Median(drawn)
	}
	slices.Sort(medians)
	return medians[resamples*25/1000], medians[resamples-1-resamples*25/1000], true
}
