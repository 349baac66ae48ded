package keys

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// An election is in one slot, its lock is the fair lock of its name, and it shares its own keys with
// no other name.
func TestForLeader(t *testing.T) {
	seen := make(map[string]string)
	for _, name := range []string{"x", "{x}", "{x}y", "x}y", "x{", "{}x", "a:b", "{a}:b", "names:{x}", "holdfast"} {
		at, err := ForLeader(name)
		if err != nil {
			t.Fatal(err)
		}
		if fair, _ := ForFairLock(name); at.FairLock != fair {
			t.Errorf("%q: the lock is %v, the fair one %v", name, at.FairLock, fair)
		}
		for _, key := range []string{at.Record, at.Names, at.Changes} {
			if Slot(key) != Slot(name) {
				t.Errorf("%q: %q is in another slot", name, key)
			}
			if other, ok := seen[key]; ok {
				t.Errorf("%q and %q share %q", name, other, key)
			}
			seen[key] = name
		}
	}
	if _, err := ForLeader(""); !errors.Is(err, errs.BadArgument) {
		t.Errorf("no name: %v", err)
	}
}
