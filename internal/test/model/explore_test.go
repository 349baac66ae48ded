// The explorer visits every world of a model that can be reached, breadth first.

package model

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// model is a model that can be explored. W is the type of its worlds.
type model[W comparable] interface {
	begin() W
	// next calls visit with every world that may follow w. If the step to that world is itself
	// wrong, next also says what is wrong with it.
	next(w *W, visit func(s step, to W, wrong string))
	// alike returns one and the same world for all worlds that differ in nothing that matters.
	alike(w W) W
	// wrong says what is wrong with a world, or returns "" if nothing is wrong.
	wrong(w *W) string
	// summary shows what there is to see of a world.
	summary(w *W) string
}

// found is the result of an exploration.
type found struct {
	states int
	wrong  string // "" if nothing is wrong
	trace  string // the shortest way to the world that is wrong
}

// more is what is wrong with an exploration that has not come to its end.
const more = "there are more states than the limit"

// explore visits every world that can be reached, up to limit of them, and ends with the first
// world that is wrong. It knows a world again by a hash of 64 bits.
func explore[W comparable](r model[W], limit int) found {
	begin := r.begin()
	seed := maphash.MakeSeed()
	seen := map[uint64]struct{}{maphash.Comparable(seed, begin): {}}
	worlds, from := []W{begin}, []int32{-1}
	for i := 0; i < len(worlds); i++ {
		here := worlds[i]
		var bad *W
		var why string
		r.next(&here, func(_ step, to W, wrong string) {
			to = r.alike(to)
			if bad != nil {
				return
			}
			if wrong == "" {
				wrong = r.wrong(&to)
			}
			if wrong != "" {
				bad, why = &to, wrong
				return
			}
			sum := maphash.Comparable(seed, to)
			if _, known := seen[sum]; !known {
				seen[sum] = struct{}{}
				worlds, from = append(worlds, to), append(from, int32(i))
			}
		})
		if bad != nil {
			return found{len(worlds), why, trace(r, worlds, from, i, *bad)}
		}
		if len(worlds) > limit {
			return found{len(worlds), more, ""}
		}
	}
	return found{states: len(worlds)}
}

// trace tells the way to a world in words. It goes the way once more, so that each client keeps its
// letter.
func trace[W comparable](r model[W], worlds []W, from []int32, last int, bad W) string {
	way := []W{bad}
	for i := int32(last); i > 0; i = from[i] {
		way = append(way, worlds[i])
	}
	slices.Reverse(way)

	var text strings.Builder
	here := r.begin()
	for n, target := range way {
		found := false
		r.next(&here, func(s step, to W, wrong string) {
			// The last step is identified by what is wrong with it: other steps may reach the same
			// world.
			if found || r.alike(to) != target || n == len(way)-1 && wrong == "" && r.wrong(&to) == "" {
				return
			}
			found, here = true, to
			line := fmt.Sprintf("%3d  %s", n+1, strings.ReplaceAll(s.String(), " 's", "'s"))
			fmt.Fprintf(&text, "%-60s %s\n", line, r.summary(&to))
		})
	}
	return text.String()
}
