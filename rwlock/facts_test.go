// The documents state an RWMutex's numbers as they are in the code.

package rwlock

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

func TestTheDocumentsSayHowLongAMarkCounts(t *testing.T) {
	doctest.Says(t, markLife, "docs/guarantees.md", "a waiter's mark, for {}")
	doctest.Says(t, markLife, "docs/rwmutex.md", "A mark counts for {} from its last refresh")
	doctest.Says(t, markLife, "docs/keyspace.md", "{} from the last try of one", "until when a mark counts: {}")
	doctest.Says(t, pageSize, "rwlock/query.go", "asks Redis for about {} readers at a time")
}
