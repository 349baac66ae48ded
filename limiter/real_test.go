// This test runs on a real server.

package limiter_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/limiter"
)

// When memory is short, nothing can be taken, and what is refused changes nothing.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	client := clienttest.OpenClient(t, server.Client(t))
	l := client.Limiter("api", limiter.Rate(10, time.Hour))
	if err := server.Admin().ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Allow(t.Context(), 1); !errors.Is(err, holdfast.ErrOutOfMemory) {
		t.Errorf("Allow: %v", err)
	}
	if err := l.Set(t.Context(), limiter.Rate(10, time.Hour)); !errors.Is(err, holdfast.ErrOutOfMemory) {
		t.Errorf("Set: %v", err)
	}
}
