package engine

import (
	"strconv"
	"testing"
)

// The greatest number counts, whichever comes first. The memory does not grow without an end.
func TestEnded(t *testing.T) {
	var e Ended
	if n := e.Greatest("a"); n != 0 {
		t.Errorf("%d, and nothing was noted", n)
	}
	for _, n := range []int64{3, 7, 5, 0} {
		e.Note("a", n)
	}
	e.Note("b", 2)
	if a, b := e.Greatest("a"), e.Greatest("b"); a != 7 || b != 2 {
		t.Errorf("%d and %d, want 7 and 2", a, b)
	}
	for i := range 10 * maxEnded {
		e.Note(strconv.Itoa(i), int64(i+1))
		if n := e.Greatest(strconv.Itoa(i)); n != int64(i+1) || len(e.greatest) > maxEnded {
			t.Fatalf("%d, with %d names", n, len(e.greatest))
		}
	}
}
