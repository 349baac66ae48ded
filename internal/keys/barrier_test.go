package keys

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// The keys and the channel of a barrier are in one slot, and shared with no other name.
func TestForBarrier(t *testing.T) {
	seen := make(map[string]string)
	for _, name := range []string{"x", "{x}", "{x}y", "x}y", "x{", "{}x", "a:b", "{a}:b", "places:{x}", "holdfast"} {
		at, err := ForBarrier(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{at.Record, at.Places, at.Channel} {
			if Slot(key) != Slot(name) {
				t.Errorf("%q: %q is in another slot", name, key)
			}
			if other, ok := seen[key]; ok {
				t.Errorf("%q and %q share %q", name, other, key)
			}
			seen[key] = name
		}
	}
	if _, err := ForBarrier(""); !errors.Is(err, errs.BadArgument) {
		t.Errorf("no name: %v", err)
	}
}
