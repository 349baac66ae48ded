// These tests show that the oracles of barriers and of a Once are alive.

package main

import (
	"testing"
)

// toldParty makes a party that was told of a generation, or of none. Times are in ms.
func toldParty(lane string, call, at, generation int64, arrival int, how string) *party {
	return &party{lane: lane, call: call * ms, deadline: (call + 1000) * ms, at: at * ms, generation: generation, arrival: arrival, ending: how}
}

func TestThePartiesOfAGenerationAgree(t *testing.T) {
	a := toldParty("0.barrier.0", 0, 30, 5, 2, tripped)
	b := toldParty("1.barrier.0", 10, 31, 5, 1, tripped)
	c := toldParty("2.barrier.0", 20, 29, 5, 0, tripped)
	is := func(how string, p *party) *party {
		other := *p
		other.ending = how
		return &other
	}
	nowhere := func(how string, p *party) *party {
		other := is(how, p)
		other.generation = 0
		return other
	}
	next := func(after int64, p *party) *party {
		other := *p
		other.call, other.at, other.deadline = p.call+after*ms, p.at+after*ms, p.deadline+after*ms
		other.generation++
		return &other
	}
	for _, tc := range []struct {
		name       string
		parties    []*party
		lost       span // in which Redis may have lost its data
		violations int
	}{
		{name: "all are told", parties: []*party{a, b, c}},
		{name: "and those of the next generation", parties: []*party{a, b, c, next(50, a), next(50, b), next(50, c)}},
		{name: "one is told nothing", parties: []*party{a, b}, violations: 1},
		{name: "one was killed", parties: []*party{a, b, nowhere(gone, c)}},
		{name: "one was killed, and a renewal arrived after that", parties: []*party{next(3500, a), next(3500, b), nowhere(gone, c)}},
		{name: "one was killed long before", parties: []*party{next(5000, a), next(5000, b), nowhere(gone, c)}, violations: 1},
		{name: "one cannot know, of this generation", parties: []*party{a, b, is(unknown, c)}},
		{name: "one cannot know, of another generation", parties: []*party{a, b, is(unknown, next(0, c))}, violations: 1},
		{name: "one cannot know, but two are missing", parties: []*party{a, nowhere(unknown, b)}, violations: 1},
		{name: "one cannot explain two generations", parties: []*party{a, b, nowhere(unknown, c), next(50, a), next(50, b)}, violations: 1},
		{name: "of two, one can explain only the first generation", parties: []*party{
			a, b, toldParty("2.barrier.0", 0, 3040, 0, 0, unknown), nowhere(unknown, c), next(3000, a), next(3000, b),
		}},
		{name: "two have the same arrival", parties: []*party{a, b, c, toldParty("3.barrier.0", 0, 30, 5, 1, tripped)}, violations: 1},
		{name: "an arrival that there is not", parties: []*party{a, b, toldParty("3.barrier.0", 0, 30, 5, 3, tripped)}, violations: 1},
		{name: "no generation", parties: []*party{toldParty("3.barrier.0", 0, 30, 0, 1, tripped), nowhere(gone, b), nowhere(gone, c)}, violations: 1},
		{name: "it breaks", parties: []*party{is(broken, a), is("cancelled", b), nowhere("cancelled", c)}},
		{name: "it trips for two, and breaks for one", parties: []*party{a, is(broken, b), c}, violations: 2},
		{name: "the same, but Redis lost it meanwhile", parties: []*party{a, is(broken, b), c}, lost: span{25, 26}},
		{name: "a generation goes back", parties: []*party{next(0, a), next(0, b), next(0, c), toldParty("0.barrier.0", 60, 70, 4, 2, broken)}, violations: 1},
		{name: "a generation stays", parties: []*party{a, b, c, toldParty("0.barrier.0", 60, 70, 5, 2, broken)}, violations: 2},
		{name: "and Redis lost it in between", parties: []*party{next(0, a), next(0, b), next(0, c), toldParty("0.barrier.0", 60, 70, 4, 2, broken)}, lost: span{40, 41}},
		{name: "one is told late", parties: []*party{{lane: a.lane, at: 6000 * ms, deadline: 9000 * ms, generation: 5, arrival: 2, ending: tripped}, b, c}, violations: 1},
		{name: "one leaves late", parties: []*party{toldParty("0.barrier.0", 0, 6000, 5, 2, "cancelled")}, violations: 1},
	} {
		v := &verdict{report: &report{Kinds: map[string]*kindReport{}}, counts: in(tc.lost), stood: map[string][]span{}}
		v.counts.lease = 2000 * ms
		if v.barrier(&object{name: "barrier-0", rule: rules["barrier"], parties: tc.parties}); len(v.Violations) != tc.violations {
			t.Errorf("%s: %q, want %d", tc.name, v.Violations, tc.violations)
		}
	}
}

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
