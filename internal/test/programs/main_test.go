// Package programs plays scenarios that generators make, in virtual time. Each has an oracle: a model
// that says what may happen. The package has no code except tests.
package programs

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
