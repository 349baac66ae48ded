// How soon things must come: a free object to the lane that waits for it, a loss to its holder, a grant
// after an outage.

package main

import (
	"cmp"
	"slices"
	"time"
)

// handoverBound is how long an object may be free while a lane waits for it. A lost message is
// made up for after 1.25 s. A request or reply that is lost silently is made up for by another
// one. Either may happen twice. Beside outages, stops and kills the bound is compared with the
// time in which Redis had the object free; otherwise with the whole hand-over.
const handoverBound = 4500 * time.Millisecond

// placeKept is the longest time for which a place in the queue is kept after it was last heard
// of: that of a fair lock. A lock may be handed to the place at its end, and the answer be
// lost.
const placeKept = 5 * time.Second

// freeBound returns how long an object may be free while a lane waits. A fair lock that came
// free without a release, because its holder died, is left to the first in its queue until that
// place is over; that waiter may be dead too.
func freeBound(object string) time.Duration {
	if kind := kindOf(object); kind == "fair" || kind == "leader" {
		return placeKept + handoverBound
	}
	return handoverBound
}

// slowHandover is longer than a message ever takes: a waiter that took longer was not
// woken by one.
const slowHandover = 500 * time.Millisecond

// longStall is how long a process must stand still to hold others up.
const longStall = 50 * time.Millisecond

// longest is how many of the longest waits the report lists.
const longest = 10

// resumeBound is how soon the holder must be notified of a loss after its process runs again.
const resumeBound = 50 * time.Millisecond

// usableBound is how soon after an outage a grant must come. Where all replicas have to
// confirm, the outage lasts until they are back.
const usableBound = 3 * time.Second

// losses judges when the holders were notified of losses.
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
			v.exceed("%s was told of a loss %v after the deadline, and had not run for %v of it", s.lane, s.late, s.starved)
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
			v.exceed("%s was free for %v before %s, which waited, had it", h.object, free, h.lane)
		}
		if bound := placeKept + lease + handoverBound; h.kept > bound {
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
			v.exceed("%s took %v from a release to %s, which waited, and no fault explains it", h.object, h.took, h.lane)
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
			v.exceed("nothing was granted for %v after %q was over", took, r.class)
		}
	}
}
