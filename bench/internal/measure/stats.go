// What is made of several figures: the median, the spread, and how evenly a lock was
// shared out.

package measure

import "slices"

// Median returns the middle of the values, the mean of the two middle ones if their
// number is even, and 0 if there are none.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Jain returns Jain's index of fairness: 1 if all shares are equal, 1/n if one of n
// has everything. It is 0 if nobody has anything.
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

// Starved returns how many had no share at all.
func Starved(shares []int64) int {
	n := 0
	for _, s := range shares {
		if s == 0 {
			n++
		}
	}
	return n
}
