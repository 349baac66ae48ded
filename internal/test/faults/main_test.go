// Package faults tries a Client against what happens in the field. Lost and late requests and replies,
// messages that are lost, calls that are cancelled and clocks of different rates come about in virtual time.
// Failovers, outages, refusals, replicas, and processes that stand still come about on real servers;
// these tests judge outcomes alone. The package has no code except tests.
package faults

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Together(6) // most tests wait for failovers, outages and expiries
	redistest.Main(m, redistest.Child("holder", runHolder))
}
