// A release that was announced is set against the one that a look has found.

package holdfast

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/inspect"
)

// A message may come before or after the look that finds its release. This catches a release that is reported twice
// then, and one that is forgotten for good.
func TestAReleaseIsSetAgainstItsMessage(t *testing.T) {
	free := state{kind: KindFree}
	held := func(by string) state { return state{kind: KindMutex, holds: by, left: time.Minute} }
	type step struct {
		heard int
		to    state
		want  int // unseen
	}
	for what, tc := range map[string][]step{
		"in time":                 {{0, held("a"), 0}, {1, free, 0}},
		"late":                    {{0, held("a"), 0}, {0, free, 0}, {1, free, 0}},
		"late, and one more":      {{0, held("a"), 0}, {0, free, 0}, {2, free, 1}},
		"lost":                    {{0, held("a"), 0}, {0, free, 0}, {0, free, 0}, {1, free, 1}},
		"between free and free":   {{3, free, 3}},
		"before a grant":          {{2, held("a"), 2}, {1, held("b"), 0}, {2, held("c"), 1}},
		"held all the while":      {{0, held("a"), 0}, {1, held("a"), 0}},
		"of a lock that ran out":  {{0, state{kind: KindMutex, holds: "a", left: time.Nanosecond}, 0}, {1, held("b"), 0}},
		"of the last of readers":  {{0, state{kind: KindRWLock, holds: "ab", left: time.Minute}, 0}, {1, free, 0}, {1, free, 1}},
		"of a writer, and others": {{0, state{kind: KindRWLock, holds: "a!", left: time.Minute}, 0}, {3, free, 2}},
	} {
		var l ledger
		before := free
		for n, s := range tc {
			f := inspect.OfLocks
			if before.kind == KindRWLock || strings.Contains(what, "readers") || strings.Contains(what, "writer") {
				f = inspect.OfRW
			}
			l.heard[f] += s.heard
			b, a := before.inspection(t), s.to.inspection(t)
			events := between(Compare(b, a), l.unseen(b, a, Compare(b, a)))
			got := 0
			if at := slices.IndexFunc(events, func(e Event) bool { return e.What == EventUnseen }); at >= 0 {
				got = events[at].Times
			}
			if got != s.want {
				t.Errorf("%s, step %d: %d unseen, want %d", what, n, got, s.want)
			}
			before = s.to
		}
	}
}
