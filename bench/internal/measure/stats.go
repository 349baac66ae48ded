// This file combines several figures: the median, the spread, and how evenly a lock was shared.

package measure

import "slices"

// Median returns the middle of the values. If their number is even, it returns the mean of the two
// middle values. If there are no values, it returns 0.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Jain returns Jain's index of fairness: 1 if all n shares are equal, and 1/n if one share is
// everything and the others are 0. It returns 0 if all shares are 0.
func Jain(shares []int64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += float64(s)
		squares += float64(s) * float64(s)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// Starved returns the number of shares that are 0.
func Starved(shares []int64) int {
	n := 0
	for _, s := range shares {
		if s == 0 {
			n++
		}
	}
	return n
}
