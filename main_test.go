// What the tests of this package share. No test leaves a goroutine behind.

package holdfast_test

import (
	"context"
	"maps"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

func TestMain(m *testing.M) {
	redistest.Together(3) // tests that wait for failovers, outages and expiries
	redistest.Main(m)
}

// play plays a scene as a subtest.
func play(t *testing.T, what string, scene func(t *testing.T, w *world.World)) {
	t.Helper()
	t.Run(what, func(t *testing.T) { world.Play(t, scene) })
}

// must ends the test on an error.
func must(t testing.TB, err error) { t.Helper(); redistest.Must(t, err) }

// errOf returns the error of a call that also returns something else.
func errOf[T any](_ T, err error) error { return err }

// granted waits for an attempt, and returns its lease.
func granted(t *testing.T, a *world.Attempt) *holdfast.Lease {
	t.Helper()
	l, err := a.Result()
	must(t, err)
	return l
}

// nothing is work that does nothing.
func nothing(context.Context) error { return nil }

// lockers has the kinds of Lockers that are at their names alone, by the kinds that telemetry calls them.
var lockers = map[string]func(c *holdfast.Client, name string) holdfast.Locker{
	"mutex":        func(c *holdfast.Client, name string) holdfast.Locker { return c.Mutex(name) },
	"fairmutex":    func(c *holdfast.Client, name string) holdfast.Locker { return c.FairMutex(name) },
	"rwlock.write": func(c *holdfast.Client, name string) holdfast.Locker { return c.RWMutex(name) },
	"rwlock.read":  func(c *holdfast.Client, name string) holdfast.Locker { return c.RWMutex(name).RLocker() },
}

// more returns lockers and those in other, which may have others of the same kinds.
func more(other map[string]func(c *holdfast.Client, name string) holdfast.Locker) map[string]func(c *holdfast.Client, name string) holdfast.Locker {
	all := maps.Clone(lockers)
	maps.Copy(all, other)
	return all
}
