// How big a big test is: full counts at night, a tenth of them in CI.

package redistest

import (
	"os"
	"testing"
)

// Count returns full when HOLDFAST_LONG=1, and otherwise a tenth of it, at
// least 1.
func Count(t testing.TB, full int) int {
	t.Helper()
	if os.Getenv("HOLDFAST_LONG") == "1" {
		return full
	}
	return max(1, full/10)
}
