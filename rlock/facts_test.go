// What the documents say of a Mutex's numbers.

package rlock

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/doctest"
)

func TestTheDocumentsSayHowLongAPlaceIsKept(t *testing.T) {
	doctest.Says(t, queueLease, "docs/guarantees.md", "stays with it for {} at the most", "Its process's turn, for {}")
	doctest.Says(t, queueLease, "docs/keyspace.md", "{} for a Mutex")
	doctest.Says(t, queueLease, "docs/architecture.md", "lapses {} after it was last kept")
	doctest.Says(t, queueLease, "docs/redisson-interop.md", "keeps it for {} at the most")
}
