// This file prints the table at the end: what was acquired, what overlapped, and how fast each
// language was awake after the other language's release.

package interop

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Main(reporting{m}, redistest.Child("holder", runHolder))
}

// reporting runs the tests, ends what the tests shared, and prints what they measured.
type reporting struct{ tests *testing.M }

func (r reporting) Run() int {
	code := r.tests.Run()
	machines.kill()
	if table := measured.table(); table != "" {
		redistest.Tell(table)
	}
	return code
}

// measured is package-level because tests measure and TestMain prints.
var measured figures

// figures has the rows of the table.
type figures struct {
	mu   sync.Mutex
	rows map[row]*values
}

// row names what was measured: grants to one language of what the other language had held.
type row struct{ pair, version, topology, direction string }

const (
	javaToGo = "Java -> Go"
	goToJava = "Go -> Java"
)

// values are the figures of a row. A figure that was not measured is negative.
type values struct {
	acquisitions, overlaps, crossings int64
	wakeUps                           []time.Duration
}

func (f *figures) of(r row, set func(v *values)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rows == nil {
		f.rows = make(map[row]*values)
	}
	if f.rows[r] == nil {
		f.rows[r] = &values{acquisitions: -1}
	}
	set(f.rows[r])
}

// table returns the rows as text, or "" if there are no rows.
func (f *figures) table() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.rows) == 0 {
		return ""
	}
	var rows []row
	for r := range f.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(strings.Compare(b.version, a.version), strings.Compare(b.topology, a.topology),
			strings.Compare(a.pair, b.pair), strings.Compare(b.direction, a.direction))
	})
	const format = "%-44s %-8s %-8s %-11s %12s %9s %10s %12s %12s\n"
	out := fmt.Sprintf(format, "pair", "Redisson", "server", "direction", "acquisitions", "overlaps", "crossings",
		"wake-up p50", "wake-up p99")
	for _, r := range rows {
		v := f.rows[r]
		acquisitions, overlaps, crossings := "", "", ""
		if v.acquisitions >= 0 {
			acquisitions, overlaps, crossings = fmt.Sprint(v.acquisitions), fmt.Sprint(v.overlaps), fmt.Sprint(v.crossings)
		}
		p50, p99 := "", ""
		if len(v.wakeUps) > 0 {
			p50, p99 = percentile(v.wakeUps, 0.50).String(), percentile(v.wakeUps, 0.99).String()
		}
		out += fmt.Sprintf(format, r.pair, r.version, r.topology, r.direction, acquisitions, overlaps, crossings, p50, p99)
	}
	return out
}

// percentile returns the time that the given share of the times does not exceed.
func percentile(times []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[int(math.Ceil(share*float64(len(sorted))))-1].Round(10 * time.Microsecond)
}
