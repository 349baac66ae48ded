// No goroutine outlives a test of this package.

package dial

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
