package renewal

import (
	"testing"
	"time"
	"unsafe"
)

func TestRanAhead(t *testing.T) {
	for _, c := range []struct {
		what            string
		wall, monotonic time.Duration
		want            bool
	}{
		{"both stood still", 0, 0, false},
		{"both moved", 40 * time.Millisecond, 40 * time.Millisecond, false},
		{"a long sleep without tasks", time.Hour, time.Hour, false},
		{"slewed by 500 ppm for an hour", time.Hour + 1800*time.Microsecond, time.Hour, false},
		{"at the threshold", 90 * time.Millisecond, 40 * time.Millisecond, false},
		{"just above it", 90*time.Millisecond + 1, 40 * time.Millisecond, true},
		{"suspended for a minute", time.Minute, 40 * time.Millisecond, true},
		{"set forward by a second", time.Second + 40*time.Millisecond, 40 * time.Millisecond, true},
		{"set back by a second", -960 * time.Millisecond, 40 * time.Millisecond, false},
		{"late wake-up, no suspension", 3 * time.Second, 3 * time.Second, false},
	} {
		if got := ranAhead(c.wall, c.monotonic); got != c.want {
			t.Errorf("%s: ranAhead(%v, %v) = %v, want %v", c.what, c.wall, c.monotonic, got, c.want)
		}
	}
}

func TestElapsedTellsASuspendedMachine(t *testing.T) {
	before := time.Now()
	after := before.Add(time.Minute + 40*time.Millisecond)
	stopMonotonic(&after, time.Minute)

	wall, monotonic := elapsed(before, after)
	if wall != time.Minute+40*time.Millisecond || monotonic != 40*time.Millisecond {
		t.Errorf("elapsed = %v of wall, %v of monotonic time; want 1m0.04s and 40ms", wall, monotonic)
	}
	if !ranAhead(wall, monotonic) {
		t.Error("a minute of suspension was not seen")
	}
}

// stopMonotonic takes d off the monotonic reading of t alone, as a suspended machine
// does. Package time offers no way to do that: the reading is the second word of a Time.
func stopMonotonic(t *time.Time, d time.Duration) {
	*(*int64)(unsafe.Add(unsafe.Pointer(t), 8)) -= int64(d)
}
