package work

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/bench/internal/ceiling"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
)

func TestWorkloadsHaveNamesAndContenders(t *testing.T) {
	variants := map[string]bool{ceiling.Name: true, ceiling.AsSent: true, Nothing: true, Refreshes: true, Extends: true, Message: true, OneStripe: true, ManyStripes: true,
		SkewedStripes: true, TelemetryOff: true, TelemetryNoop: true,
		TelemetryEmptySDK: true, TelemetryEmptyBatch: true, TelemetrySDK: true, TelemetryBatch: true}
	seen := make(map[string]bool)
	for _, w := range All() {
		if w.Name == "" || w.Title == "" || seen[w.Name] || len(w.Contenders) == 0 || (w.Run == nil) != (w.Processes == 0) ||
			(w.Run == nil) == (w.Scale == nil) {
			t.Errorf("%+v", w)
		}
		if seen[w.Name] = true; w.Scale != nil {
			continue // its contenders are sizes
		}
		for _, name := range w.Contenders {
			if _, err := peer.Find(strings.TrimSuffix(name, Resting)); err != nil && !variants[name] {
				t.Errorf("%s: %v", w.Name, err)
			}
		}
	}
}

func TestTheSharesOfAllProcessesAreTheWhole(t *testing.T) {
	for _, n := range []int{1, 8, 10, 1000} {
		sum := 0
		for i := range processes {
			sum += (&Site{Process: i, Processes: processes}).Share(n)
		}
		if sum != n {
			t.Errorf("the shares of %d are %d", n, sum)
		}
	}
}
