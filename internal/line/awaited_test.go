package line

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestAwaitedIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, l *client, _ *redistest.MiniServer) {
		if l.Awaited("k") {
			t.Error("awaited, with nobody there")
		}
		l.NoteAwaited("k") // at the age of 0
		time.Sleep(lately - time.Millisecond)
		if !l.Awaited("k") {
			t.Error("forgotten at once")
		}
		time.Sleep(2 * time.Millisecond)
		if l.Awaited("k") {
			t.Errorf("not forgotten after %v", lately)
		}
	})
}
