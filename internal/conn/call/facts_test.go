// The documents state the numbers of the connections as the code has them.

package call

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

func TestTheDocumentsSayHowLongARequestIsGood(t *testing.T) {
	doctest.Says(t, Window, "docs/guarantees.md", "not-after on the server's clock, {} after its sending")
	doctest.Says(t, Window, "docs/architecture.md", "It is {} after the sending at the latest")
}
