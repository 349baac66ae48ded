package engine

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestAwaitedIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, e *Engine, _ *redistest.MiniServer) {
		if e.Awaited("k") {
			t.Error("awaited, with nobody there")
		}
		e.NoteAwaited("k") // at the age of 0
		time.Sleep(lately - time.Millisecond)
		if !e.Awaited("k") {
			t.Error("forgotten at once")
		}
		time.Sleep(2 * time.Millisecond)
		if e.Awaited("k") {
			t.Errorf("not forgotten after %v", lately)
		}
	})
}
