// The judgement: all oracles, applied to the reports of the lanes.

package main

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// handoverBound is how long an object may be free while a lane waits for it. A lost message is
// made up for after 1.25 s. A request or reply that is lost silently is made up for by another
// one. Either may happen twice. Beside outages, stops and kills the bound is compared with the
// time in which Redis had the object free; otherwise with the whole hand-over.
const handoverBound = 4500 * time.Millisecond

// placeLease is the longest time for which a place in the queue is kept after it was last heard
// of: that of a fair lock. A lock may be handed to the place at its end, and the answer be
// lost.
const placeLease = 5 * time.Second

// freeBound returns how long an object may be free while a lane waits. A fair lock that came
// free without a release, because its holder died, is left to the first in its queue until that
// place is over; that waiter may be dead too.
func freeBound(object string) time.Duration {
	if kind := kindOf(object); kind == "fair" || kind == "leader" {
		return placeLease + handoverBound
	}
	return handoverBound
}

// slowHandover is longer than a message ever takes: a waiter that took longer has asked by
// itself.
const slowHandover = 500 * time.Millisecond

// longStall is how long a process must stand still to hold others up.
const longStall = 50 * time.Millisecond

// longest is how many of the longest waits the report lists.
const longest = 10

// resumeBound is how soon a loss must be told after its process runs again.
const resumeBound = 50 * time.Millisecond

// usableBound is how soon after an outage a grant must come. Where all replicas have to
// confirm, the outage lasts until they are back.
const usableBound = 3 * time.Second

// verdict gathers the findings of the oracles.
type verdict struct {
	*report
	leases windows // in which Redis may forget objects with leases
	counts windows // in which Redis may forget a semaphore
	shadow windows
	stalls windows           // in which some process stood still for a while
	stood  map[string][]span // in which each process stood still at all

	handovers []handover
	signals   []lossSignal
	histories []func() []history // made only when they are checked: all at once would take much memory
}

// judge runs the oracles and returns the report.
func (s *soak) judge(problems []string) *report {
	v := &verdict{report: s.newReport()}
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
	if kindOf(o.name) == "latch" {
		v.latch(o)
		return
	}
	forgets := v.leases
	if !o.rule.owned {
		forgets = v.counts.counting(o.holds)
	}
	v.Writes += o.writes
	v.Fenced += o.fenced
	v.StaleWrites += o.stale
	if o.stale > 0 {
		v.violate("%s: %d stale writes were taken", o.name, o.stale)
	}
	for _, f := range overlaps(o.name, o.rule.capacity, o.holds, func(holds []*hold) bool {
		return forgets.excuse(holds) || o.rule.undated && v.stoodStill(holds)
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
		v.violate("%s lost %s, which it renewed, after %v, and no fault explains it: %s", h.lane, o.name, time.Duration(h.told-h.enter), h.why)
	}
	certain := slices.DeleteFunc(slices.Clone(o.holds), func(h *hold) bool {
		_, to := giving(h, o.rule, s.config.Lease)
		return forgets.meet(h.enter-forgets.lease, to) || o.rule.undated && v.stoodStill([]*hold{h})
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

// latch judges one latch.
func (v *verdict) latch(o *object) {
	k := v.kind("latch")
	for _, c := range o.counts {
		if v.counts.meet(c.call-v.counts.lease, c.at) {
			return
		}
		if !c.wait {
			k.Grants++
		} else if took := time.Duration(c.at - c.call); took > k.WorstWait.d() {
			k.WorstWait = duration(took)
		}
	}
	v.histories = append(v.histories, func() []history {
		return []history{latchHistory(o.name, latchLanes, o.counts)}
	})
}

// losses judges when the holders were told of losses.
func (v *verdict) losses(lease time.Duration) {
	m := margin(lease)
	v.Losses.Told = len(v.signals)
	v.Losses.Margin = duration(m)
	for _, s := range v.signals {
		v.Losses.Worst = max(v.Losses.Worst, duration(s.late))
		switch {
		case s.never:
			v.Losses.Late++
			v.violate("%s was never told of a loss", s.lane)
		case s.late < -m:
			v.Losses.ByServer++
		case s.late <= m:
			v.Losses.InTime++
		case s.late-s.starved <= m:
			v.Losses.Starved++
			v.Losses.AfterResume = max(v.Losses.AfterResume, duration(s.late-s.starved))
		case s.starved > 0 && s.late-s.starved <= resumeBound:
			v.Losses.Starved++
			v.Losses.AfterResume = max(v.Losses.AfterResume, duration(s.late-s.starved))
		default:
			v.Losses.Late++
			v.violate("%s was told of a loss %v after the deadline, and had not run for %v of it", s.lane, s.late, s.starved)
		}
	}
}

// wakeUps judges how long objects were not held while a lane waited.
func (v *verdict) wakeUps(lease time.Duration) {
	var clear, shadowed []time.Duration
	for _, h := range v.handovers {
		starved := v.starved(h.lane, h.from, h.from+int64(h.took))
		if free := h.spent[unheld]; free > freeBound(h.object)+starved {
			v.LostWakeUps++
			v.violate("%s was free for %v before %s, which waited, had it", h.object, free, h.lane)
		}
		if bound := placeLease + lease + handoverBound; h.kept > bound {
			v.violate("%s was kept for %v by one whom nobody knows of, want at most %v", h.object, h.kept, bound)
		}
		if h.shadow {
			shadowed = append(shadowed, h.took)
			continue
		}
		clear = append(clear, h.took)
		k := v.kind(kindOf(h.object))
		k.WorstHandover = max(k.WorstHandover, duration(h.took))
		if h.took > slowHandover {
			k.SlowHandovers++
		}
		if h.took > handoverBound+starved {
			v.LostWakeUps++
			v.violate("%s took %v from a release to %s, which waited, and no fault explains it", h.object, h.took, h.lane)
		}
	}
	slices.SortFunc(v.handovers, func(a, b handover) int { return cmp.Compare(b.took, a.took) })
	for _, h := range v.handovers[:min(len(v.handovers), longest)] {
		v.Longest = append(v.Longest, longWait{
			Object: h.object, After: duration(h.from - stamp(v.Began)), Took: duration(h.took),
			Kept: duration(h.spent[standing] + h.spent[reserved]), ForOne: duration(h.kept),
			OutOfReach: duration(h.spent[unseen]), Free: duration(h.spent[unheld]),
		})
	}
	v.Handovers, v.HandoversInFaults = spreadOf(clear), spreadOf(shadowed)
}

func spreadOf(all []time.Duration) spread {
	return spread{
		Count: len(all), P50: duration(quantile(all, 0.5)), P99: duration(quantile(all, 0.99)), Worst: duration(quantile(all, 1)),
	}
}

// recoveries judges how soon after an outage of servers a grant came.
func (v *verdict) recoveries(s *soak) {
	var enters []int64
	for _, o := range s.referee.objects {
		for _, h := range o.holds {
			enters = append(enters, h.enter)
		}
	}
	slices.Sort(enters)
	for _, r := range s.log.recoveries {
		i, _ := slices.BinarySearch(enters, r.at)
		if i == len(enters) {
			continue // no grant came after it: the run ended
		}
		again := func(by strike) bool { return r.at < by.From && by.From < min(enters[i], r.at+int64(usableBound)) }
		if slices.ContainsFunc(s.log.strikes, again) {
			continue // the next fault came before any grant was possible
		}
		took := time.Duration(enters[i] - r.at)
		v.Recovery = max(v.Recovery, duration(took))
		if took > usableBound {
			v.violate("nothing was granted for %v after %q was over", took, r.class)
		}
	}
}

// checkHistories makes Porcupine check all histories, on all processors.
func (v *verdict) checkHistories() {
	var (
		mu      sync.Mutex
		workers sync.WaitGroup
		next    = make(chan func() []history)
	)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for some := range next {
				for _, h := range some() {
					why := h.judge()
					mu.Lock()
					v.Histories.Checked++
					v.Histories.Operations += len(h.operations)
					if why != "" {
						v.violate("a history of %s, of %d operations, is %s", h.object, len(h.operations), why)
					}
					mu.Unlock()
				}
			}
		})
	}
	for _, some := range v.histories {
		next <- some
	}
	close(next)
	workers.Wait()
}

// enough judges whether the run has tried enough.
func (v *verdict) enough(s *soak) {
	took := s.ended.Sub(s.began)
	if least := int(took.Seconds()) * leastGrants; v.Grants < least {
		v.violate("%d grants in %v are too few to tell anything, want %d", v.Grants, took, least)
	}
	if rate := float64(s.warm.grants) / s.warming.Seconds(); rate < leastGrants {
		v.violate("%.0f grants a second before the first fault are too few, want %d", rate, leastGrants)
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
