package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// calmly is a verdict on the record of one object in a calm of a hundred seconds.
func calmly(o *object) *verdict {
	s := &soak{warming: 100 * time.Second, warmed: time.Unix(0, 0).Add(100 * time.Second)}
	s.referee = &referee{objects: map[string]*object{o.name: o}}
	v := &verdict{report: &report{Kinds: map[string]*kindReport{}}}
	v.handovers = handovers(o.name, o.holds, windows{}, nil)
	v.calm(s)
	return v
}

func waiting(h *hold) *hold {
	h.waited = true
	return h
}

func TestTheCalm(t *testing.T) {
	turns := func(free int64) (all []*hold) {
		for i := range int64(2 * enoughHandovers) {
			all = append(all, of("a", i+1, max(0, 10*i-5)*free, 10*i*free+free, 10*i*free+9*free, 10*i*free+10*free))
		}
		return all
	}
	for _, tc := range []struct {
		name, object string
		holds        []*hold
		want         string // in the violation; none if empty
	}{
		{"hand-overs by messages", "mutex-0", turns(1), ""},
		{"hand-overs by asking", "mutex-0", turns(300), "one in ten"},
		{"a fair lock goes round", "fair-0", []*hold{
			waiting(of("a", 1, 0, 400, 500, 501)), waiting(of("b", 2, 150, 502, 600, 601)), waiting(of("c", 3, 300, 602, 700, 701)),
		}, ""},
		{"a fair lock goes to the last", "fair-0", []*hold{
			waiting(of("a", 9, 0, 900, 901, 902)),
			waiting(of("b", 1, 150, 200, 201, 202)), waiting(of("c", 2, 250, 300, 301, 302)), waiting(of("d", 3, 350, 400, 401, 402)),
		}, "which is fair"},
		{"who tries is no waiter", "fair-0", []*hold{
			of("a", 9, 0, 900, 901, 902),
			waiting(of("b", 1, 150, 200, 201, 202)), waiting(of("c", 2, 250, 300, 301, 302)), waiting(of("d", 3, 350, 400, 401, 402)),
		}, ""},
		{"a seat that is soon free", "mutex-of1", []*hold{waiting(of("1.mutex.2", 1, 0, 20, 30, 31))}, ""},
		{"a seat that somebody has who is gone", "mutex-of1", []*hold{waiting(of("1.mutex.2", 1, 0, 1900, 1901, 1902))}, "nobody had"},
		{"after the calm", "mutex-of1", []*hold{waiting(of("1.mutex.2", 1, 99500, 100400, 100401, 100402))}, ""},
	} {
		got := calmly(&object{name: tc.object, rule: ruleOf(tc.object), holds: tc.holds}).Violations
		if caught := slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, tc.want) }); tc.want == "" && len(got) > 0 || tc.want != "" && !caught {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestALossNeedsAReason(t *testing.T) {
	const lease = 2 * time.Second
	renewed := func(h *hold) *hold {
		h.renewed, h.told, h.releasing = true, h.last, h.last+1
		return ending(lost, h)
	}
	fault := windows{spans: []span{{1000 * ms, 1500 * ms}}}
	for _, tc := range []struct {
		name           string
		hold           *hold
		shadow, stalls windows
		want           int
	}{
		{"none", renewed(of("a", 1, 0, 1, 3000, 3001)), windows{}, windows{}, 1},
		{"Release has found it", ending(lost, &hold{renewed: true, releasing: 3000 * ms, told: 3001 * ms}), windows{}, windows{}, 0},
		{"it was not renewed", ending(lost, of("a", 1, 0, 1, 3000, 3001)), windows{}, windows{}, 0},
		{"a fault", renewed(of("a", 1, 0, 1, 3000, 3001)), fault, windows{}, 0},
		{"a fault that was over", renewed(of("a", 1, 0, 1, 4000, 4001)), fault, windows{}, 1},
		{"the process stood still", renewed(of("a", 1, 0, 1, 3000, 3001)), windows{}, windows{spans: []span{{1500 * ms, 2100 * ms}}}, 0},
		{"it stood still for a moment", renewed(of("a", 1, 0, 1, 3000, 3001)), windows{}, windows{spans: []span{{1500 * ms, 1600 * ms}}}, 1},
	} {
		v := &verdict{shadow: tc.shadow, stalls: tc.stalls}
		if got := v.unexplained(&object{holds: []*hold{tc.hold}}, lease); len(got) != tc.want {
			t.Errorf("%s: %d losses are not explained, want %d", tc.name, len(got), tc.want)
		}
	}
}

func TestALossThatIsNeverTold(t *testing.T) {
	v := &verdict{report: &report{}}
	v.signals = signals([]*hold{ending(lost, of("a", 1, 0, 1, 2, 3))}, nil)
	if v.losses(2 * time.Second); v.Losses.Late != 1 || len(v.Violations) != 1 {
		t.Errorf("%d late, %q", v.Losses.Late, v.Violations)
	}
}
