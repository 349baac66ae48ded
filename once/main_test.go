package once

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// childWorker is set by the tests outside the package, which have the child's function.
var childWorker func(*redistest.ChildContext)

func TestMain(m *testing.M) {
	redistest.Main(m, redistest.Child("worker", func(c *redistest.ChildContext) { childWorker(c) }))
}
