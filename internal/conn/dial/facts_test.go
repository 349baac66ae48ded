// The documents state the numbers of the connections as the code has them.

package dial

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

func TestTheDocumentsSayHowLongACallerLooks(t *testing.T) {
	const connecting, architecture = "docs/connecting.md", "docs/architecture.md"
	doctest.Says(t, lookFor, architecture, "reads without sleeping for {} first")
	doctest.Says(t, lookFor, connecting, "without sleeping for up to {}")
}
