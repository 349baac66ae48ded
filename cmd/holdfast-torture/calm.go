// What no fault explains: in the calm before the first one, and outside the shadows of
// all, the bounds are tight.

package main

import (
	"maps"
	"slices"
	"time"
)

const (
	// calmHandover is what nine of ten hand-overs take at the most, in the calm. A message
	// takes a millisecond; a waiter that finds out by asking takes half a second and more.
	calmHandover = 250 * time.Millisecond
	// enoughHandovers is how many say something of most.
	enoughHandovers = 20
	// overtaking is how much later than another a lane has to have asked to be an overtaker:
	// until then it may have been heard first.
	overtaking = 100 * time.Millisecond
	// mayOvertake is how many of them may, as a request can be held up on its way.
	mayOvertake = 2
)

// calm judges what happened before the first fault, from the first grant on.
func (v *verdict) calm(s *soak) {
	calm := span{stamp(s.warmed.Add(-s.warming)), stamp(s.warmed)}
	inside := func(from, to int64) bool { return calm.from <= from && to <= calm.to }
	var took []time.Duration
	for _, h := range v.handovers {
		if inside(h.from, h.from+int64(h.took)) && !v.stalls.meet(h.from, h.from+int64(h.took)) {
			took = append(took, h.took)
		}
	}
	v.CalmHandovers = spreadOf(took)
	if slow := quantile(took, 0.9); len(took) >= enoughHandovers && slow > calmHandover {
		v.violate("before the first fault one in ten of %d hand-overs took more than %v, want at most %v", len(took), slow, calmHandover)
	}
	for _, name := range slices.Sorted(maps.Keys(s.referee.objects)) {
		turns := slices.DeleteFunc(slices.Clone(s.referee.objects[name].holds), func(h *hold) bool {
			return !h.waited || !inside(h.call, h.enter)
		})
		waits := slices.DeleteFunc(slices.Clone(turns), func(h *hold) bool { return v.stalls.meet(h.call, h.enter) })
		switch {
		case name == crowded:
			v.shares(turns, s.config.Processes)
		case sat(name):
			v.seat(name, waits)
		case kindOf(name) == "fair":
			v.order(name, waits)
		}
	}
}

// seat judges the waits of a sitter: what others do to its object is over at once.
func (v *verdict) seat(name string, waits []*hold) {
	for _, h := range waits {
		if took := time.Duration(h.enter - h.call); took > strayBound {
			v.violate("%s waited %v for %s, which nobody had, before the first fault", h.lane, took, name)
		}
	}
}

// order judges the order in which a fair lock was granted.
func (v *verdict) order(name string, waits []*hold) {
	for _, h := range waits {
		if n := overtakers(h, waits); n > mayOvertake {
			v.violate("%s, which is fair, went to %d lanes that came more than %v after %s, before it went to %[4]s", name, n, overtaking, h.lane)
		}
	}
}

// overtakers returns how many of the others came clearly later than the hold, and had it
// before.
func overtakers(h *hold, others []*hold) (n int) {
	for _, o := range others {
		if o.call > h.call+int64(overtaking) && o.enter < h.enter {
			n++
		}
	}
	return n
}

// unexplained returns the leases of one name that are renewed and were lost although no
// fault, and no process that stood still, was the reason. What Release finds is left out: a
// request that the wire doubles frees the lock, and is answered that nobody has it.
func (v *verdict) unexplained(o *object, lease time.Duration) (all []*hold) {
	for _, h := range o.holds {
		if !h.renewed || h.ending != lost || h.told == 0 || h.told >= h.releasing {
			continue
		}
		if from := h.told - int64(lease); !v.shadow.meet(from, h.told) && v.starved(h.lane, from, h.told) < lease/4 {
			all = append(all, h)
		}
	}
	return all
}
