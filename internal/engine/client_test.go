// The id of a Client differs from an id that Redisson makes.

package engine

import (
	"testing"

	"github.com/google/uuid"
)

func TestClientIDs(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		id := newClient()
		parsed, err := uuid.Parse(id)
		if err != nil || parsed.Variant() != uuid.RFC4122 || len(id) != 36 || seen[id] {
			t.Fatalf("%q: %v", id, err)
		}
		seen[id] = true
		if !IsClient(id) {
			t.Errorf("%q is no Client's", id)
		}
		if java := uuid.NewString(); IsClient(java) {
			t.Errorf("%q is a Client's", java)
		}
	}
	if IsClient("") || IsClient("x") {
		t.Error("what is no UUID is a Client's")
	}
}
