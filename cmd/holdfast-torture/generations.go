// The oracle of barriers: what the parties of each generation got.

package main

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// party is one call of Await, as its lane reported it. Instants are in ns of the wall clock.
type party struct {
	lane     string
	call     int64
	deadline int64 // of its context
	at       int64 // Await had returned, or its process was gone

	generation int64 // in which it arrived; 0: in none, or it does not know
	arrival    int
	ending     string
}

// trips reports whether the generation has tripped, as the party got it.
func (p *party) trips() bool { return p.ending == tripped }

// doubtful reports whether nobody knows what its generation would have told the party.
func (p *party) doubtful() bool { return p.ending == unknown || p.ending == gone }

// breaks reports whether the party knows that the generation in which it arrived has broken. It may have
// broken it by leaving.
func (p *party) breaks() bool { return !p.trips() && !p.doubtful() && p.generation != 0 }

// generation is the parties that know how one generation ended.
type generation struct {
	number           int64
	tripped, broken  []*party
	from, until, end int64 // the first call; by when the generation had ended; the last return
}

const (
	// lateArrival is how long after its wait a request of a party may still arrive: one that takes its place, or
	// one that renews it for another lease.
	lateArrival = 2 * time.Second
	// leaveBound is how long after the end of its context a party returns: 3 s (docs/barrier.md), and
	// some time for what is not waiting.
	leaveBound = 3500 * time.Millisecond
)

// barrierReport counts generations, and the parties that do not know how theirs ended.
type barrierReport struct{ Tripped, Broken, Doubts int }

func (r *barrierReport) add(other barrierReport) {
	r.Tripped += other.Tripped
	r.Broken += other.Broken
	r.Doubts += other.Doubts
}

// barrier judges the record of one barrier. What spans a time in which Redis may have forgotten the barrier is
// left out.
func (v *verdict) barrier(o *object) {
	var doubts []*party
	for _, p := range o.parties {
		v.party(o.name, p)
		if p.doubtful() {
			doubts = append(doubts, p)
		}
	}
	v.Barrier.Doubts += len(doubts)
	for _, g := range generationsOf(o.parties) {
		if v.counts.meet(g.from-v.counts.lease, g.end) {
			continue
		}
		if len(g.tripped) == 0 {
			v.Barrier.Broken++
			continue
		}
		v.Barrier.Tripped++
		doubts = v.tripped(o.name, g, doubts)
		v.wokenUp(o.name, g)
	}
	v.growing(o)
}

// party judges one party alone.
func (v *verdict) party(name string, p *party) {
	if over := time.Duration(p.at - p.deadline); p.ending != gone && over > leaveBound+v.starved(p.lane, p.deadline, p.at) {
		v.exceed("%s was told of %s %v after its wait was to end", p.lane, name, over)
	}
	if !p.trips() {
		return
	}
	k := v.kind("barrier")
	k.Grants++
	k.WorstWait = max(k.WorstWait, duration(p.at-p.call))
	if p.generation <= 0 || p.arrival < 0 || p.arrival >= parties {
		v.violate("%s was told that %s has tripped, in generation %d as %d", p.lane, name, p.generation, p.arrival)
	}
}

// generationsOf returns the generations of which parties know how they ended, by their numbers.
func generationsOf(all []*party) []*generation {
	byNumber := map[int64]*generation{}
	for _, p := range all {
		if !p.trips() && !p.breaks() {
			continue
		}
		g := byNumber[p.generation]
		if g == nil {
			g = &generation{number: p.generation, from: p.call, until: p.at}
			byNumber[p.generation] = g
		}
		if p.trips() {
			g.tripped = append(g.tripped, p)
		} else {
			g.broken = append(g.broken, p)
		}
		g.from, g.until, g.end = min(g.from, p.call), min(g.until, p.at), max(g.end, p.at)
	}
	return slices.SortedFunc(maps.Values(byNumber), func(a, b *generation) int { return cmp.Compare(a.number, b.number) })
}

// tripped judges a generation of which some know that it has tripped: all its parties were, or do not
// know. It returns the doubts that are left to explain other generations.
func (v *verdict) tripped(name string, g *generation, doubts []*party) []*party {
	if len(g.broken) > 0 {
		v.violate("generation %d of %s has tripped for %s, and has broken for %s", g.number, name, g.tripped[0].lane, g.broken[0].lane)
	}
	by := map[int]string{}
	for _, p := range g.tripped {
		if other := by[p.arrival]; other != "" {
			v.violate("generation %d of %s has two parties with the arrival %d: %s and %s", g.number, name, p.arrival, other, p.lane)
		}
		by[p.arrival] = p.lane
	}
	for missing := parties - len(g.tripped); missing > 0; missing-- {
		i := g.explainedBy(doubts, v.counts.lease)
		if i < 0 {
			v.violate("generation %d of %s has tripped, and only %d parties were told", g.number, name, len(g.tripped))
			break
		}
		doubts = slices.Delete(doubts, i, i+1)
	}
	return doubts
}

// explainedBy returns which of some doubts may have been in this generation; -1 if none may. Of several it is one that can
// explain no other generation, or else the one that ended first: those that end later may explain later ones.
func (g *generation) explainedBy(doubts []*party, lease int64) int {
	best := -1
	for i, p := range doubts {
		switch {
		case !g.mayHave(p, lease):
		case p.generation != 0:
			return i
		case best < 0 || p.at < doubts[best].at:
			best = i
		}
	}
	return best
}

// mayHave reports whether a party that does not know how its generation ended may have been in this one. Its place
// outlives it by a lease.
func (g *generation) mayHave(p *party, lease int64) bool {
	if p.generation != 0 {
		return p.generation == g.number
	}
	return p.call <= g.until && p.at+int64(lateArrival)+lease >= g.from
}

// wokenUp judges how soon the parties of a generation that has tripped were notified.
func (v *verdict) wokenUp(name string, g *generation) {
	for _, p := range g.tripped {
		took := time.Duration(p.at - g.until)
		if v.shadow.meet(g.until, p.at) {
			continue
		}
		k := v.kind("barrier")
		k.WorstHandover = max(k.WorstHandover, duration(took))
		if took > slowHandover {
			k.SlowHandovers++
		}
		if took > handoverBound+v.starved(p.lane, g.until, p.at) {
			v.LostWakeUps++
			v.exceed("%s was told %v after another that generation %d of %s has tripped", p.lane, took, g.number, name)
		}
	}
}

// growing judges whether each generation has a greater number than those that had ended before its
// parties came.
func (v *verdict) growing(o *object) {
	know := slices.DeleteFunc(slices.Clone(o.parties), func(p *party) bool { return !p.trips() && !p.breaks() })
	byEnd := slices.SortedFunc(slices.Values(know), func(a, b *party) int { return cmp.Compare(a.at, b.at) })
	slices.SortFunc(know, func(a, b *party) int { return cmp.Compare(a.call, b.call) })
	newest, ended := (*party)(nil), 0
	for _, p := range know {
		for ; byEnd[ended].at < p.call; ended++ {
			if newest == nil || byEnd[ended].generation >= newest.generation {
				newest = byEnd[ended]
			}
		}
		if newest != nil && p.generation <= newest.generation && !v.counts.meet(newest.at-v.counts.lease, p.at) {
			v.violate("%s was told of generation %d of %s, after %s of generation %d", p.lane, p.generation, o.name, newest.lane, newest.generation)
		}
	}
}
