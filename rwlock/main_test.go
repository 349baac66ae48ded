package rwlock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Together(4) // these tests wait for leases to run out, and for what was lost
	redistest.Main(m, redistest.Child("worker", runWorker), redistest.Child("reader", runReader))
}
