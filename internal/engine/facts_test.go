// The documents state the engine's numbers as the code has them.

package engine

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

func TestTheDocumentsSayHowLongThingsTake(t *testing.T) {
	doctest.Says(t, Grace, "docs/guarantees.md", "`Release` goes on when its context is cancelled, for {}")
	doctest.Says(t, Grace, "docs/connecting.md", "tries for up to {}")
	doctest.Says(t, Grace, "lease/lease.go", "within a limit of its own ({}")
	doctest.Says(t, finishLimit, "docs/architecture.md", "It goes on for {} with its caller")
	doctest.Says(t, finishLimit, "semaphore/semaphore.go", "not answered within {}")
	doctest.Says(t, finishLimit, "latch/latch.go", "not answered within {}")
	doctest.Says(t, closeGrace, "docs/architecture.md", "for at most {}")
	doctest.Says(t, closeGrace, "docs/guarantees.md", "within {} if calls were")
	doctest.Says(t, closeGrace, "client.go", "for at most {}")
	doctest.Says(t, closeGrace+tellingGrace, "docs/guarantees.md", "within {} if a log handler")
	doctest.Says(t, closeGrace+tellingGrace, "client.go", "such as a log handler, it waits for {}")
}
