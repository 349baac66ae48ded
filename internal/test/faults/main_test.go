// Package faults tries a Client against what happens in the field, on real servers: failovers,
// outages, lost replies, refusals, clocks, contention, and processes that die or stand still. The
// package has no code except tests.
package faults

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Together(3) // most tests wait for failovers, outages and expiries
	redistest.Main(m,
		redistest.Child("contender", runContender),
		redistest.Child("holder", runHolder))
}
