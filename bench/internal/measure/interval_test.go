package measure

import (
	"math/rand/v2"
	"testing"
)

func TestAnIntervalOfNineRoundsLeavesOutTheOutermost(t *testing.T) {
	low, high, ok := Interval([]float64{9, 1, 8, 2, 7, 3, 6, 4, 5})
	if low != 2 || high != 8 || !ok {
		t.Errorf("%v to %v, %v", low, high, ok)
	}
	again, _, _ := Interval([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9})
	if again != low {
		t.Errorf("the same values in another order begin at %v", again)
	}
}

func TestFewRoundsHaveNoInterval(t *testing.T) {
	if low, high, ok := Interval([]float64{3, 1, 2}); low != 1 || high != 3 || ok {
		t.Errorf("%v to %v, %v", low, high, ok)
	}
	if _, _, ok := Interval(nil); ok {
		t.Error("an interval of nothing")
	}
}

// TestAnIntervalHoldsTheMedian draws rounds from a skewed distribution whose median is known.
func TestAnIntervalHoldsTheMedian(t *testing.T) {
	const median, tries = 0.25, 400 // of the square of an even number from 0 to 1
	r := rand.New(rand.NewPCG(3, 4))
	held := 0
	for range tries {
		values := make([]float64, 9)
		for i := range values {
			v := r.Float64()
			values[i] = v * v
		}
		if low, high, _ := Interval(values); low <= median && median <= high {
			held++
		}
	}
	if held < tries*92/100 || held > tries*99/100 {
		t.Errorf("%d of %d intervals hold the median", held, tries)
	}
}
