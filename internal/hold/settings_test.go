// These tests are about the margin of a lease, and about times that may be zero.

package hold

import (
	"testing"
	"time"
)

// The margin is never so large that a lease has no usable time left.
func TestMargin(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		MinLease:               6 * time.Millisecond,
		200 * time.Millisecond: 7 * time.Millisecond,
		time.Second:            15 * time.Millisecond,
		30 * time.Second:       305 * time.Millisecond,
		time.Hour:              36*time.Second + 5*time.Millisecond,
	} {
		if got := margin(d); got != want {
			t.Errorf("of %v: %v, want %v", d, got, want)
		}
	}
}

func TestEarlierAndLater(t *testing.T) {
	var none time.Time
	one, two := time.Unix(1, 0), time.Unix(2, 0)
	for _, tc := range []struct{ a, b, earlier, later time.Time }{
		{one, two, one, two}, {two, one, one, two}, {none, one, one, one}, {one, none, one, one}, {none, none, none, none},
	} {
		if got := earlier(tc.a, tc.b); !got.Equal(tc.earlier) {
			t.Errorf("earlier of %v and %v: %v", tc.a, tc.b, got)
		}
		if got := later(tc.a, tc.b); !got.Equal(tc.later) {
			t.Errorf("later of %v and %v: %v", tc.a, tc.b, got)
		}
	}
}
