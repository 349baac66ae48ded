// No test of this package leaves a goroutine behind.

package lease

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
