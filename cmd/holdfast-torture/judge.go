// The judgement: all oracles, applied to the reports of the lanes.

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// verdict gathers the findings of the oracles.
type verdict struct {
	*report
	lenient bool    // what takes too long is no violation
	leases  windows // in which Redis may forget objects with leases
	counts  windows // in which Redis may forget a semaphore
	shadow  windows
	stalls  windows           // in which some process stood still for a while
	stood   map[string][]span // in which each process stood still at all

	handovers []handover
	signals   []lossSignal
	histories []func() []history // made only when they are checked: all at once would take much memory
}

// judge runs the oracles and returns the report.
func (s *soak) judge(problems []string) *report {
	v := &verdict{report: s.newReport(), lenient: !s.config.Bounds}
	v.Violations = problems
	v.leases, v.counts, v.shadow = s.windows()
	v.stood = s.referee.stalls
	for _, all := range v.stood {
		for _, one := range joined(all) {
			if time.Duration(one.to-one.from) >= longStall {
				v.stalls.spans = append(v.stalls.spans, one)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.referee.objects)) {
		v.object(s.referee.objects[name], s)
	}
	v.losses(s.config.Lease)
	v.calm(s)
	v.wakeUps(s.config.Lease)
	v.recoveries(s)
	v.checkHistories()
	v.enough(s)
	for class, n := range s.referee.refused {
		if strings.HasPrefix(class, unforeseen) || class == denied && v.FaultsByClass["credentials refused"] == 0 {
			v.violate("%d times: %s", n, class)
		}
	}
	for class, n := range s.referee.endings {
		if strings.HasPrefix(class, unforeseen) {
			v.violate("%d releases: %s", n, class)
		}
	}
	return v.report
}

func (v *verdict) violate(format string, args ...any) {
	v.Violations = append(v.Violations, fmt.Sprintf(format, args...))
}

// exceed adds a finding that a slow or busy machine can be the reason of.
func (v *verdict) exceed(format string, args ...any) {
	if v.lenient {
		v.Exceeded = append(v.Exceeded, fmt.Sprintf(format, args...))
		return
	}
	v.violate(format, args...)
}

// windows returns the times in which Redis may have forgotten something, by tier, and the
// shadows of faults.
func (s *soak) windows() (leases, counts, shadow windows) {
	lease := int64(s.config.Lease)
	leases.lease, counts.lease = lease, lease
	for _, w := range s.log.windows {
		counts.spans = append(counts.spans, w.span)
		if w.loss == everything || s.config.Replicas < replicasOf[s.config.Topology] {
			leases.spans = append(leases.spans, w.span)
		}
	}
	// A fault may have effects after it is over: a hold taken meanwhile runs out, and
	// connections are made again.
	for _, f := range s.log.shadows {
		shadow.spans = append(shadow.spans, span{f.from, f.to + lease + int64(2*time.Second)})
	}
	return leases, counts, shadow
}

// object judges the record of one name.
func (v *verdict) object(o *object, s *soak) {
	switch kindOf(o.name) {
	case "latch":
		v.latch(o)
		return
	case "barrier":
		v.barrier(o)
		return
	}
	forgets := v.leases
	switch {
	case !o.rule.owned:
		forgets = v.counts.counting(o.holds)
	case o.rule.hasty:
		forgets = v.counts
	}
	v.Writes += o.writes
	v.Fenced += o.fenced
	v.StaleWrites += o.stale
	if o.stale > 0 {
		v.violate("%s: %d stale writes were taken", o.name, o.stale)
	}
	for _, f := range overlaps(o.name, o.rule.capacity, o.holds, func(holds []*hold) bool {
		return forgets.excuse(holds) || o.rule.undated && v.stoodStill(holds, s.config.Lease)
	}) {
		if f.unpromised {
			v.UnpromisedOverlaps++
			v.kind(kindOf(o.name)).Unpromised++
			continue
		}
		v.Overlaps++
		v.violate("overlap on %v", f)
	}
	if o.rule.fenced {
		v.Violations = append(v.Violations, disorder(o.name, o.rule.capacity, o.holds)...)
	}
	if o.rule.capacity == 1 {
		v.handovers = append(v.handovers, handovers(o.name, o.holds, v.shadow, s.lookout.of(o.name))...)
	}
	if kindOf(o.name) == "once" {
		v.once(o, forgets, s.config.Lease)
	}
	if !o.rule.undated {
		v.signals = append(v.signals, signals(o.holds, s.referee.stalls)...)
	}
	seen := s.lookout.standsOf(o.name)
	if n, worst := outlasting(o.holds, seen, v.shadow); n > 0 {
		v.violate("%s: at %d looks its holder believed in up to %v more than Redis would give it", o.name, n, worst)
	}
	for _, s := range strays(o.holds, seen, v.shadow) {
		v.violate("%s stood for %v for %s, an owner that no lane knows", o.name, time.Duration(s.to-s.from), shortOwner(s.owner))
	}
	for _, h := range v.unexplained(o, s.config.Lease) {
		v.exceed("%s lost %s, which it renewed, after %v, and no fault explains it: %s", h.lane, o.name, time.Duration(h.told-h.enter), h.why)
	}
	certain := slices.DeleteFunc(slices.Clone(o.holds), func(h *hold) bool {
		_, to := giving(h, o.rule, s.config.Lease)
		return forgets.meet(h.enter-forgets.lease, to) || o.rule.undated && v.stoodStill([]*hold{h}, s.config.Lease)
	})
	// An object that Redis forgot begins anew: a reader then has no writer's token.
	for _, part := range forgets.part(certain) {
		v.histories = append(v.histories, func() []history {
			return histories(o.name, o.rule, part, s.config.Lease)
		})
	}
	k := v.kind(kindOf(o.name))
	k.Grants += len(o.holds)
	for _, h := range o.holds {
		if took := time.Duration(h.enter - h.call); took > k.WorstWait.d() {
			k.WorstWait = duration(took)
		}
	}
}

// enough judges whether the run has tried enough.
func (v *verdict) enough(s *soak) {
	took := s.ended.Sub(s.began)
	if least := int(took.Seconds()) * leastGrants; v.Grants < least {
		v.violate("%d grants in %v are too few to tell anything, want %d", v.Grants, took, least)
	}
	if rate := float64(s.warm.grants) / s.warming.Seconds(); rate < leastGrants {
		v.exceed("%.0f grants a second before the first fault are too few, want %d", rate, leastGrants)
	}
	for _, kind := range s.config.Kinds {
		if v.kind(kind).Grants == 0 {
			v.violate("no %s was ever granted", kind)
		}
	}
	least := int(took.Seconds() * leastFaults / s.config.Pauses)
	if len(s.config.Faults) > 0 && v.Faults < least {
		v.violate("%d faults are too few to tell anything, want %d", v.Faults, least)
	}
	// Each of the series begins with each class once.
	if took.Seconds() < 90*s.config.Pauses {
		return
	}
	for _, class := range s.config.Faults {
		if v.FaultsByClass[class] == 0 {
			v.violate("no fault of the class %q was injected", class)
		}
	}
}

// The least that a run must have had, by second. A run on two busy processors has ten times
// that.
const (
	leastGrants = 20
	leastFaults = 1.0
)
