// A group is an attribute of few values, whatever the user's function does.

package telemetry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
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

func TestGroupsPastTheLastAreOther(t *testing.T) {
	o := grouped(t, func(name string) string { return name })
	for i := range 2 * telemetry.MaxGroups {
		o.acquire(t, fmt.Sprint("g", i), fmt.Sprint("g", i))
	}
	o.acquire(t, "g0", telemetry.OtherGroup)
	got := o.acquisitions(t)
	redistest.Equal(t, len(got), telemetry.MaxGroups+1, "%d groups: %v", got)
	last, tooMany := fmt.Sprint("g", telemetry.MaxGroups-1), fmt.Sprint("g", telemetry.MaxGroups)
	if got["g0"] != 3 || got[last] != 2 || got[tooMany] != 0 || got[telemetry.OtherGroup] != 2*telemetry.MaxGroups+1 {
		t.Errorf("acquisitions %v", got)
	}
}
