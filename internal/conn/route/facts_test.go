// The documents state the numbers of the connections as the code has them.

package route

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

func TestTheDocumentsSayWhenAServerIsGivenUp(t *testing.T) {
	doctest.Says(t, retireAfter, "docs/connecting.md", "lost its slots is closed after {}")
}
