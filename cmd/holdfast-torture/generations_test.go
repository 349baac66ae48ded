// These tests show that the oracle of barriers is alive.

package main

import "testing"

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
		if v.barrier(&object{name: "barrier-0", rule: rules["barrier"], parties: tc.parties}); len(v.Violations) != tc.violations {
			t.Errorf("%s: %q, want %d", tc.name, v.Violations, tc.violations)
		}
	}
}
