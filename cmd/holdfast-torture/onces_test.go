// These tests show that the oracle of a Once is alive.

package main

import (
	"testing"
)

// effect makes the work of a key, which had its effect and ended as how says. Times are in ms.
func effect(lane string, token, enter, last int64, how string) *hold {
	h := ending(how, of(lane, token, enter, enter, last, last+1))
	h.wrote = true
	return h
}

func TestTheWorkOfAKeyIsDoneOnceOrAgainForAReason(t *testing.T) {
	const lease = testLease
	fenced := effect("1.once.0", 1, 0, 10, lost)
	fenced.wrote = false
	again := effect("2.once.0", 2, 5000, 5010, kept)
	for _, tc := range []struct {
		name       string
		works      []*hold
		got        []int64
		stood      span // in which process 1 stood still, in ms
		shadow     span // of an outage
		lost       span // in which Redis may have lost its data
		violations int
	}{
		{name: "once", works: []*hold{again}, got: []int64{2}},
		{name: "again, though the result was kept", works: []*hold{effect("1.once.0", 1, 0, 10, kept), again}, got: []int64{2}, violations: 1},
		{name: "and there are two results", works: []*hold{effect("1.once.0", 1, 0, 10, kept), again}, got: []int64{1, 2}, violations: 2},
		{name: "Redis has lost it meanwhile", works: []*hold{effect("1.once.0", 1, 0, 10, kept), again}, got: []int64{1, 2}, lost: span{4000, 4100}},
		{name: "Redis has lost it before", works: []*hold{effect("1.once.0", 1, 4900, 4910, kept), again}, got: []int64{2}, lost: span{4000, 4100}, violations: 1},
		{name: "the process was killed", works: []*hold{effect("1.once.0", 1, 0, 10, gone), again}, got: []int64{2}},
		{name: "the work failed after its effect", works: []*hold{effect("1.once.0", 1, 0, 10, released), again}, got: []int64{2}},
		{name: "the work was lost, and its effect was refused", works: []*hold{fenced, again}, got: []int64{2}},
		{name: "lost, for no reason", works: []*hold{effect("1.once.0", 1, 0, 10, lost), again}, got: []int64{2}, violations: 1},
		{name: "lost, as the process stood still", works: []*hold{effect("1.once.0", 1, 0, 10, lost), again}, got: []int64{2}, stood: span{20, 400}},
		{name: "in doubt, for no reason", works: []*hold{effect("1.once.0", 1, 0, 10, unknown), again}, got: []int64{2}, violations: 1},
		{name: "in doubt, in an outage", works: []*hold{effect("1.once.0", 1, 0, 10, unknown), again}, got: []int64{2}, shadow: span{5, 4000}},
		{name: "a result that no work has made", works: []*hold{again}, got: []int64{7}, violations: 1},
	} {
		v := &verdict{report: &report{}, shadow: in(tc.shadow), stood: map[string][]span{}}
		if tc.stood.to > 0 {
			v.stood["1"] = []span{{tc.stood.from * ms, tc.stood.to * ms}}
		}
		o := &object{name: "once-0.1", rule: rules["once"], holds: tc.works}
		for _, token := range tc.got {
			o.result("3.once.0", note{Token: token})
		}
		forgets := in(tc.lost)
		forgets.lease = int64(lease)
		if v.once(o, forgets, lease); len(v.Violations) != tc.violations {
			t.Errorf("%s: %q, want %d", tc.name, v.Violations, tc.violations)
		}
	}
}

// in returns that time, given in ms, as a window; none if it is empty.
func in(s span) windows {
	if s.to == 0 {
		return windows{}
	}
	return windows{spans: []span{{s.from * ms, s.to * ms}}}
}

// Work that is claimed in the first moments after its process stood still for long may overlap; other work may
// not.
func TestOnlyWorkThatHasJustWokenMayOverlap(t *testing.T) {
	v := &verdict{stood: map[string][]span{"1": {{1000 * ms, 3000 * ms}, {3480 * ms, 3483 * ms}}}}
	woken, later := effect("1.once.0", 1, 0, 3010, lost), effect("1.once.0", 1, 0, 3500, lost)
	if other := effect("2.once.0", 2, 2500, 3600, kept); !v.stoodStill([]*hold{woken, other}, testLease) || v.stoodStill([]*hold{later, other}, testLease) {
		t.Errorf("woken %v, later %v; want the first alone", v.stoodStill([]*hold{woken, other}, testLease), v.stoodStill([]*hold{later, other}, testLease))
	}
}
