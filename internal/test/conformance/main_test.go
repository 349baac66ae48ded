// Package conformance runs the suite of lockertest on every kind of lock: over every topology, and on
// what lies between a process and its Redis in the field. The package has no code except tests.
package conformance

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Together(3) // most cases wait for expiries
	redistest.Main(m)
}
