// A group is an attribute of few values, whatever the user's function does.

package telemetry_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// acquire records an acquisition of each name.
func (o *observed) acquire(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		_, a := o.Acquire(t.Context(), kind, name)
		a.End(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired})
	}
}

// acquisitions returns how many were recorded, by group.
func (o *observed) acquisitions(t *testing.T) map[string]uint64 {
	t.Helper()
	counts := make(map[string]uint64)
	for _, p := range histogram(t, o.collect(t)["holdfast.acquire.duration"]).DataPoints {
		group, _ := p.Attributes.Value("holdfast.group")
		counts[group.AsString()] += p.Count
	}
	return counts
}

// prefix is the function that most users want.
func prefix(name string) string {
	before, _, _ := strings.Cut(name, ":")
	return before
}

func TestWhatIsNoGroupIsOther(t *testing.T) {
	for _, tc := range []struct {
		name  string
		group func(string) string
	}{
		{"too long", func(string) string { return strings.Repeat("x", 65) }},
		{"no text", func(string) string { return "\xff" }},
	} {
		o := grouped(t, tc.group)
		o.acquire(t, "orders:1", "orders:2")
		if got := o.acquisitions(t); got["other"] != 2 || len(got) != 1 {
			t.Errorf("%s: acquisitions %v", tc.name, got)
		}
	}
	o := grouped(t, func(string) string { return strings.Repeat("x", 64) })
	o.acquire(t, "orders:1")
	if got := o.acquisitions(t); got["other"] != 0 {
		t.Errorf("64 bytes are other: %v", got)
	}
}
