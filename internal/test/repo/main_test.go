// Package repo checks the repository as a whole: its layers, its public API, its documents, its error
// texts. The package has no code except tests.
package repo

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// The tests run in the module's folder.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		panic(err)
	}
	redistest.Main(m)
}
