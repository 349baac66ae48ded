package quorum_test

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis logs every connection that a test refuses
	redistest.Main(m)
}
