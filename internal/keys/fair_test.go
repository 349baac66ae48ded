package keys

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// A fair lock is in one slot, is the plain lock of its name, and shares its queue
// with no other name.
func TestForFairLock(t *testing.T) {
	seen := make(map[string]string)
	for _, name := range []string{"x", "{x}", "{x}y", "x}y", "x{", "{}x", "a:b", "{a}:b", "holdfast"} {
		at, err := ForFairLock(name)
		if err != nil {
			t.Fatal(err)
		}
		if plain, _ := ForLock(name); at.Lock != plain {
			t.Errorf("%q: the lock is %v, the plain one %v", name, at.Lock, plain)
		}
		for _, key := range []string{at.Queue, at.Alive, at.Open, at.GrantTo("6e0e2d3c-0000-4000-8000-000000000001")} {
			if Slot(key) != Slot(name) {
				t.Errorf("%q: %q is in another slot", name, key)
			}
			if other, ok := seen[key]; ok {
				t.Errorf("%q and %q share %q", name, other, key)
			}
			seen[key] = name
		}
	}
	if _, err := ForFairLock(""); !errors.Is(err, errs.BadArgument) {
		t.Errorf("no name: %v", err)
	}
}
