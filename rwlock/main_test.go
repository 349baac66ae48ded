package rwlock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Together(4) // these tests wait for clusters
	redistest.Main(m)
}
