package roster

import (
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Who looks at one name sees it though it is free, or is a key of another program. It is not counted among semaphores.
func TestWhatIsFreeIsNoCount(t *testing.T) {
	states := []holdfast.Inspection{
		{Name: "a", Kind: holdfast.KindFree}, {Name: "b", Kind: holdfast.KindFree, Paused: &holdfast.Pause{}},
		{Name: "c", Kind: holdfast.KindLatch}, {Name: "d", Kind: holdfast.KindUnknown},
	}
	for part, want := range map[Part]string{All: "abcd", Locks: "b", Counts: "c"} {
		names := ""
		for _, i := range (Query{Part: part}).Of(states) {
			names += i.Name
		}
		redistest.Equal(t, names, want, "%q, want %q (part %d)", want, part)
	}
	redistest.Equal(t, TotalsOf(states), Totals{Locks: 1, Counts: 1}, "totals: %+v")
}
