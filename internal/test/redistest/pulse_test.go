package redistest

import (
	"testing"
	"time"
)

func TestSlackIsWhatOneSleeperWasLate(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	p := &Pulse{beats: []*beat{
		{gaps: []gap{{at(110), 10 * time.Millisecond}, {at(150), 20 * time.Millisecond}}, beaten: at(1000)},
		{gaps: []gap{{at(135), 25 * time.Millisecond}}, beaten: at(1000)},
	}}
	for _, tc := range []struct{ from, to, late int }{
		{0, 90, 0},
		{0, 500, 30},     // both gaps of the first sleeper, and not the second's as well
		{105, 135, 25},   // the second sleeper's gap, not the first's 5 and 5
		{140, 145, 5},    // within a gap
		{200, 500, 0},    // after all gaps
		{900, 1010, 8},   // the sleep under way is late
		{1100, 1110, 10}, // and no more than the time between the two instants
	} {
		if got, want := p.Slack(at(tc.from), at(tc.to)), pulseGrain+time.Duration(tc.late)*time.Millisecond; got != want {
			t.Errorf("from %d to %d ms: %v, want %v", tc.from, tc.to, got, want)
		}
	}
}
