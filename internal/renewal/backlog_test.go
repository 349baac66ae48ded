package renewal

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Whatever order tasks come in, the one with the least by is given out first.
func TestBacklogGivesOutWhatEndsFirst(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		var b backlog
		var want []time.Duration
		disorder := r.IntN(4) // 0: all come in order
		for range 500 {
			if r.IntN(5) < 3 {
				by := time.Duration(len(want)) + time.Duration(r.IntN(1+20*disorder))
				if len(want) > 0 && disorder == 0 {
					by = want[len(want)-1]
				}
				b.push(pending{by: by})
				want = append(want, by)
				slices.Sort(want)
			} else if len(want) > 0 {
				if got := b.pop().by; got != want[0] {
					t.Fatalf("seed %d: got %d, want %d", seed, got, want[0])
				}
				want = want[1:]
			}
			if b.len() != len(want) {
				t.Fatalf("seed %d: %d tasks, want %d", seed, b.len(), len(want))
			}
		}
	}
}

// Tasks that come in the order in which they end are in the queue, where nothing is moved for them.
// One that comes late goes to the heap, and leaves no others there.
func TestBacklogKeepsAnOrderThatIsThere(t *testing.T) {
	var b backlog
	for by := range time.Duration(1000) {
		b.push(pending{by: by})
	}
	b.push(pending{by: 3})
	b.push(pending{by: 1000})
	if len(b.others) != 1 {
		t.Errorf("%d of 1002 tasks are in the heap, want 1", len(b.others))
	}
}
