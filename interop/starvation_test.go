// While both languages contend for a long time, both get their turns.

package interop

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// contentionLasts is how long both languages contend. waitsAtMost is the longest that any waiter
// may wait for one turn of some hundreds of microseconds.
const (
	contentionLasts = 15 * time.Second
	waitsAtMost     = 5 * time.Second
)

func TestNeitherLanguageStarves(t *testing.T) {
	redistest.LongRun(t)
	for _, p := range pairs {
		if p.deaf || p.unshared {
			continue // only a waiter that hears of a release, and may act on it, can come in time
		}
		t.Run(p.name, func(t *testing.T) {
			everywhere(t, p.since, func(t *testing.T, w *world) {
				g := newGuard(t)
				limit := time.Duration(redistest.Count(t, int(contentionLasts)))
				worstGo, worstJava := w.contend(p, g, "starved", contest{turns: 1 << 30, limit: limit, rest: p.rest})
				w.noOverlaps(p, g)
				grants, _, crossings := g.of(guardGo)
				javaGrants, _, _ := g.of(guardJava)
				t.Logf("in %v: Go %d turns, longest wait %v; Java %d turns, longest wait %v; %d times from Java to Go",
					limit, grants, worstGo, javaGrants, worstJava, crossings)
				least := (grants + javaGrants) / 20
				if grants < least || javaGrants < least {
					t.Errorf("Go had %d turns, Java %d: one has less than a twentieth", grants, javaGrants)
				}
				if worst := max(worstGo, worstJava); worst > waitsAtMost {
					t.Errorf("somebody waited %v for a turn", worst)
				}
			})
		})
	}
}
