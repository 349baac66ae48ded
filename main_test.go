// No test of this package leaves a goroutine behind.

package holdfast_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Together(3) // tests that wait for failovers, outages and expiries
	redistest.Main(m, redistest.Child("holder", runHolder))
}
