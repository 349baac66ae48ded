// Package enginetest gives the tests of one kind what a Client lends to its synchronizers. Only tests import it.
package enginetest

import (
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// New returns the engine of one Client, which is closed when t ends.
func New(t testing.TB, rdb redis.UniversalClient) *engine.Engine {
	t.Helper()
	e, err := Open(rdb)
	redistest.Must(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

// Open is New for a child, which has no test.
func Open(rdb redis.UniversalClient) (*engine.Engine, error) {
	return engine.New(rdb, nil, slog.New(slog.DiscardHandler))
}
