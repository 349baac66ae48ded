package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// calmly returns the verdict on the record of one object in a calm of a hundred seconds.
func calmly(lenient bool, o *object) *verdict {
	s := &soak{config: config{Processes: 2}, warming: 100 * time.Second, warmed: time.Unix(0, 0).Add(100 * time.Second)}
	s.referee = &referee{objects: map[string]*object{o.name: o}}
	v := &verdict{report: &report{Kinds: map[string]*kindReport{}}, lenient: lenient}
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
			all = append(all, waiting(of("a", i+1, max(0, 10*i-5)*free, 10*i*free+free, 10*i*free+9*free, 10*i*free+10*free)))
		}
		return all
	}
	crowd := func(calls ...int64) (all []*hold) { // the call of each process
		for i := range int64(2 * enoughTurns) {
			process := i % int64(len(calls))
			all = append(all, waiting(of(fmt.Sprint(process, ".mutex.5"), i+1, calls[process], 10*i, 10*i+5, 10*i+6)))
		}
		return all
	}
	for _, tc := range []struct {
		name, object string
		holds        []*hold
		want         string // the expected words in the violation; "" if there is none
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
		{"a lane that tries is no waiter", "fair-0", []*hold{
			of("a", 9, 0, 900, 901, 902),
			waiting(of("b", 1, 150, 200, 201, 202)), waiting(of("c", 2, 250, 300, 301, 302)), waiting(of("d", 3, 350, 400, 401, 402)),
		}, ""},
		{"a seat that is soon free", "mutex-of1", []*hold{waiting(of("1.mutex.2", 1, 0, 20, 30, 31))}, ""},
		{"a seat that is left taken", "mutex-of1", []*hold{waiting(of("1.mutex.2", 1, 0, 1900, 1901, 1902))}, "nobody had"},
		{"one process of a crowd asked before the calm", crowded, crowd(0, -10), ""},
		{"a crowd of one process", crowded, crowd(0), "process 1 had 0 of 200 turns"},
		{"after the calm", "mutex-of1", []*hold{waiting(of("1.mutex.2", 1, 99500, 100400, 100401, 100402))}, ""},
	} {
		o := &object{name: tc.object, rule: ruleOf(tc.object), holds: tc.holds}
		got := calmly(false, o).Violations
		if r := calmly(true, o); len(r.Violations) > 0 || !slices.Equal(r.Exceeded, got) {
			t.Errorf("%s, with -bounds=false: %q, and as too late %q", tc.name, r.Violations, r.Exceeded)
		}
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
		name   string
		hold   *hold
		shadow windows
		stood  []span
		want   int
	}{
		{"none", renewed(of("1.mutex.0", 1, 0, 1, 3000, 3001)), windows{}, nil, 1},
		{"Release has found it", ending(lost, &hold{renewed: true, releasing: 3000 * ms, told: 3001 * ms}), windows{}, nil, 0},
		{"it was not renewed", ending(lost, of("1.mutex.0", 1, 0, 1, 3000, 3001)), windows{}, nil, 0},
		{"a fault", renewed(of("1.mutex.0", 1, 0, 1, 3000, 3001)), fault, nil, 0},
		{"a fault that was over", renewed(of("1.mutex.0", 1, 0, 1, 4000, 4001)), fault, nil, 1},
		{"the process stood still", renewed(of("1.mutex.0", 1, 0, 1, 3000, 3001)), windows{}, []span{{1500 * ms, 2100 * ms}}, 0},
		{"it stood still for a moment", renewed(of("1.mutex.0", 1, 0, 1, 3000, 3001)), windows{}, []span{{1500 * ms, 1600 * ms}}, 1},
	} {
		v := &verdict{shadow: tc.shadow, stood: map[string][]span{"1": tc.stood}}
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

func TestTheTurnsOfACrowd(t *testing.T) {
	turns := func(of map[string]int) (all []*hold) {
		for process, n := range of {
			for range n {
				all = append(all, &hold{lane: process + ".mutex.5"})
			}
		}
		return all
	}
	for _, tc := range []struct {
		name  string
		turns map[string]int
		want  int
	}{
		{"all had some", map[string]int{"0": 50, "1": 90, "2": 20}, 0},
		{"one had none", map[string]int{"0": 50, "1": 90}, 1},
		{"one had hardly any", map[string]int{"0": 90, "1": 90, "2": 5}, 1},
		{"too few turns to tell", map[string]int{"0": 50}, 0},
	} {
		v := &verdict{report: &report{}}
		if v.shares(turns(tc.turns), 3); len(v.Violations) != tc.want {
			t.Errorf("%s: %q, want %d", tc.name, v.Violations, tc.want)
		}
	}
}

func TestWhatStandsInRedis(t *testing.T) {
	h := of("a", 1, 0, 100, 900, 901)
	h.owner, h.claims = "a", []claim{{100 * ms, 2100 * ms}, {700 * ms, 2700 * ms}}
	at := func(at, until int64, owner string) stand { return stand{at * ms, until * ms, owner} }
	for _, tc := range []struct {
		name      string
		seen      []stand
		shadow    windows
		outlasted int
		strays    int
	}{
		{"as long as it believes", []stand{at(200, 2125, "a"), at(800, 2725, "a")}, windows{}, 0, 0},
		{"shorter", []stand{at(200, 1900, "a")}, windows{}, 1, 0},
		{"shorter, before it was renewed here", []stand{at(650, 2300, "a")}, windows{}, 0, 0},
		{"shorter, after it was", []stand{at(750, 2300, "a")}, windows{}, 1, 0},
		{"shorter, beside a fault", []stand{at(200, 1900, "a")}, windows{spans: []span{{150 * ms, 160 * ms}}}, 0, 0},
		{"after the hold", []stand{at(950, 1000, "a")}, windows{}, 0, 0},
		{"nobody's, for a moment", []stand{at(2000, 4000, "b"), at(3000, 4000, "b")}, windows{}, 0, 0},
		{"nobody's, for long", []stand{at(2000, 4000, "b"), at(3900, 4000, "b")}, windows{}, 0, 1},
		{"nobody's, beside a fault", []stand{at(2000, 4000, "b"), at(3900, 4000, "b")}, windows{spans: []span{{2500 * ms, 2600 * ms}}}, 0, 0},
		{"one nobody's after the other", []stand{at(2000, 4000, "b"), at(3000, 4000, "b"), at(3050, 5000, "c"), at(4000, 5000, "c")}, windows{}, 0, 0},
	} {
		if n, _ := outlasting([]*hold{h}, tc.seen, tc.shadow); n != tc.outlasted {
			t.Errorf("%s: at %d looks it was over before, want %d", tc.name, n, tc.outlasted)
		}
		if n := len(strays([]*hold{h}, tc.seen, tc.shadow)); n != tc.strays {
			t.Errorf("%s: %d stood for nobody, want %d", tc.name, n, tc.strays)
		}
	}
}
