// The explorer: every world that can be reached, breadth first.

package modeltest

import (
	"fmt"
	"slices"
	"strings"
)

// found is what an exploration has come to.
type found struct {
	states int
	wrong  string // "" if nothing is
	trace  string // the shortest way there
}

// explore visits every world that can be reached, up to limit of them, and ends
// with the first that is wrong.
func (r *rules) explore(limit int) found {
	begin := r.begin()
	seen := map[world]struct{}{begin: {}}
	worlds, from := []world{begin}, []int32{-1}
	for i := 0; i < len(worlds); i++ {
		here := worlds[i]
		var bad *world
		var why string
		r.next(&here, func(_ step, to world, wrong string) {
			to = to.canonical(r)
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
			if _, known := seen[to]; !known {
				seen[to] = struct{}{}
				worlds, from = append(worlds, to), append(from, int32(i))
			}
		})
		if bad != nil {
			return found{len(worlds), why, r.trace(worlds, from, i, *bad)}
		}
		if len(worlds) > limit {
			return found{len(worlds), "there are more states than the limit", ""}
		}
	}
	return found{states: len(worlds)}
}

// trace tells the way to a world in words. It goes the way once more, so that
// each client keeps its letter.
func (r *rules) trace(worlds []world, from []int32, last int, bad world) string {
	way := []world{bad}
	for i := int32(last); i > 0; i = from[i] {
		way = append(way, worlds[i])
	}
	slices.Reverse(way)

	var text strings.Builder
	here := r.begin()
	for n, target := range way {
		found := false
		r.next(&here, func(s step, to world, wrong string) {
			// The last step is told by what is wrong with it: its world may be reached
			// by others as well.
			if found || to.canonical(r) != target || n == len(way)-1 && wrong == "" && r.wrong(&to) == "" {
				return
			}
			found, here = true, to
			line := fmt.Sprintf("%3d  %s", n+1, strings.ReplaceAll(s.String(), " 's", "'s"))
			fmt.Fprintf(&text, "%-60s %s\n", line, r.summary(&to))
		})
	}
	return text.String()
}

// summary is what there is to see of a world.
func (r *rules) summary(w *world) string {
	var parts []string
	for m := range r.members {
		if c := w.holder(m); c >= 0 {
			parts = append(parts, fmt.Sprintf("server %d: %c for %d", m+1, 'A'+c, w.members[m].ttl))
		}
	}
	for c := range r.clients {
		who := &w.clients[c]
		if who.phase != inside {
			continue
		}
		state := fmt.Sprintf("%c is in, token %d, valid", 'A'+c, who.token)
		for m := range r.members {
			state += fmt.Sprintf(" %d", who.links[m].valid)
		}
		if who.paused {
			state += ", paused"
		}
		parts = append(parts, state)
	}
	return strings.Join(parts, "; ")
}
