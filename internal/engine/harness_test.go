// The engine's tests share an Engine in virtual time.

package engine

import (
	"log/slog"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var discard = slog.New(slog.DiscardHandler)

// inBubble runs test in virtual time, with an Engine on an embedded server.
func inBubble(t *testing.T, test func(t *testing.T, e *Engine, s *redistest.MiniServer)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		s := redistest.Mini(t)
		e, err := New(s.Client(), nil, discard)
		redistest.Must(t, err)
		defer e.Close() // also after a t.Fatal: a remaining waiter would poll for ever
		test(t, e, s)
	})
}
