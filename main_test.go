// No test of this package leaves a goroutine behind.

package holdfast_test

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable()     // go-redis logs every connection that a test refuses
	redistest.Together(3) // tests that wait for failovers, outages and expiries
	redistest.Main(m, faultChildren...)
}
