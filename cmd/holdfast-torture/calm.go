// The calm: before the first fault, and outside the shadows of all faults, the bounds are
// tight.

package main

import (
	"maps"
	"slices"
	"time"
)

const (
	// calmHandover is the longest time that nine of ten hand-overs may take in the calm. A
	// message takes a millisecond; a waiter that finds out by asking takes half a second and
	// more.
	calmHandover = 250 * time.Millisecond
	// enoughHandovers is the number of hand-overs from which on calmHandover is judged.
	enoughHandovers = 20
	// overtaking is how much later than another a lane must have asked to be an overtaker:
	// within that time Redis may have heard it first.
	overtaking = 100 * time.Millisecond
	// mayOvertake is how many overtakers are allowed, because a request can be held up on its
	// way.
	mayOvertake = 2
)

// calm judges the time from the first grant to the first fault.
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
		v.exceed("before the first fault one in ten of %d hand-overs took more than %v, want at most %v", len(took), slow, calmHandover)
	}
	for _, name := range slices.Sorted(maps.Keys(s.referee.objects)) {
		turns := slices.DeleteFunc(slices.Clone(s.referee.objects[name].holds), func(h *hold) bool {
			return !h.waited || !inside(h.enter, h.enter)
		})
		waits := slices.DeleteFunc(slices.Clone(turns), func(h *hold) bool {
			return !inside(h.call, h.enter) || v.stalls.meet(h.call, h.enter)
		})
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

// seat judges the waits of a sitter: the other lanes' use of its object must be over at once.
func (v *verdict) seat(name string, waits []*hold) {
	for _, h := range waits {
		if took := time.Duration(h.enter - h.call); took > strayBound {
			v.exceed("%s waited %v for %s, which nobody had, before the first fault", h.lane, took, name)
		}
	}
}

// order judges the order in which a fair lock was granted.
func (v *verdict) order(name string, waits []*hold) {
	for _, h := range waits {
		if n := overtakers(h, waits); n > mayOvertake {
			v.exceed("%s, which is fair, went to %d lanes that came more than %v after %s, before it went to %[4]s", name, n, overtaking, h.lane)
		}
	}
}

// overtakers returns how many of the others clearly came later than the hold, and were granted
// the object before it.
func overtakers(h *hold, others []*hold) (n int) {
	for _, o := range others {
		if o.call > h.call+int64(overtaking) && o.enter < h.enter {
			n++
		}
	}
	return n
}

// unexplained returns the renewed leases of one name that were lost although neither a fault
// nor a process that stood still was the reason. Losses that Release finds are left out: a
// request that the wire doubles frees the lock, and its second run is answered that the lock is
// not held.
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
