// These tests show that the oracles are alive: each oracle finds what it is for, and lets pass what
// it must let pass.

package main

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// of makes a hold of the only permit of a mutex, with times in ms.
func of(lane string, token, call, enter, last, end int64) *hold {
	return &hold{
		lane: lane, token: token, amount: 1, ending: released,
		call: call * ms, enter: enter * ms, last: last * ms, releasing: last * ms, end: end * ms,
	}
}

const (
	ms        = int64(time.Millisecond)
	testLease = 100 * time.Millisecond
)

func ending(how string, h *hold) *hold {
	h.ending = how
	return h
}

func amounting(amount int, h *hold) *hold {
	h.amount = amount
	return h
}

func TestOracles(t *testing.T) {
	for _, tc := range []struct {
		name, kind       string
		holds            []*hold
		overlaps, tokens int
		legal            bool
	}{
		{"turns", "mutex", []*hold{of("a", 1, 0, 1, 5, 6), of("b", 2, 2, 6, 9, 10), of("a", 3, 8, 11, 12, 13)}, 0, 0, true},
		{"two are in at once", "mutex", []*hold{of("a", 1, 0, 1, 5, 6), of("b", 2, 2, 4, 9, 10)}, 1, 0, false},
		{"a holder that was stopped claims nothing after its last look", "mutex", []*hold{
			ending(lost, of("a", 1, 0, 1, 2, 500)), of("b", 2, 2, 300, 310, 311),
		}, 0, 0, true},
		{"a holder that was killed leaves its lock to the next, after its lease", "mutex", []*hold{
			ending(gone, of("a", 1, 0, 1, 2, 20)), of("b", 2, 2, 110, 120, 121),
			ending(unknown, of("c", 3, 2, 130, 131, 160)), of("d", 4, 2, 200, 201, 202),
		}, 0, 0, true},
		{"a release that nobody answered may not have freed the lock before it was called", "mutex", []*hold{
			ending(unknown, of("a", 1, 0, 1, 50, 60)), of("b", 2, 2, 40, 41, 42),
		}, 1, 0, false},
		{"a token is given twice", "mutex", []*hold{of("a", 5, 0, 1, 2, 3), of("b", 5, 4, 5, 6, 7)}, 0, 2, false},
		{"a token goes back", "mutex", []*hold{of("a", 5, 0, 1, 2, 3), of("b", 4, 4, 5, 6, 7)}, 0, 1, false},
		{"readers are together, a writer is alone", "rw", []*hold{
			amounting(everybody, of("w", 7, 0, 1, 2, 3)), of("a", 7, 0, 4, 9, 10), of("b", 7, 0, 5, 8, 9),
			amounting(everybody, of("w", 8, 4, 11, 12, 13)),
		}, 0, 0, true},
		{"a writer is in with a reader", "rw", []*hold{of("a", 7, 0, 4, 9, 10), amounting(everybody, of("w", 8, 4, 6, 12, 13))}, 1, 0, false},
		{"more permits than there are", "permits", []*hold{amounting(2, of("a", 0, 0, 1, 9, 10)), amounting(2, of("b", 0, 0, 2, 9, 10))}, 1, 0, false},
		{"as many permits as there are", "permits", []*hold{
			amounting(2, of("a", 0, 0, 1, 9, 10)), of("b", 0, 0, 2, 9, 10), amounting(2, of("c", 0, 0, 11, 12, 13)),
		}, 0, 0, true},
	} {
		rule := rules[tc.kind]
		if found := overlaps("o", rule.capacity, tc.holds, func([]*hold) bool { return false }); len(found) != tc.overlaps {
			t.Errorf("%s: %d overlaps, want %d: %v", tc.name, len(found), tc.overlaps, found)
		}
		if found := disorder("o", rule.capacity, tc.holds); rule.fenced && len(found) != tc.tokens {
			t.Errorf("%s: %d tokens out of order, want %d: %q", tc.name, len(found), tc.tokens, found)
		}
		for _, h := range histories("o", rule, tc.holds, testLease) {
			if got := h.check(); (got == porcupine.Ok) != tc.legal {
				t.Errorf("%s: the history is %s%s", tc.name, got, h.explain())
			}
		}
	}
}

func TestAWindowExcusesOnlyWhatWasGrantedBeforeAndInIt(t *testing.T) {
	w := windows{spans: []span{{1000 * ms, 1010 * ms}}, lease: 100 * ms}
	for _, tc := range []struct {
		name  string
		holds []*hold
		want  bool
	}{
		{"before it", []*hold{of("a", 1, 0, 500, 550, 0), of("b", 2, 0, 510, 550, 0)}, false},
		{"across it", []*hold{of("a", 1, 0, 990, 1100, 0), of("b", 2, 0, 1020, 1100, 0)}, true},
		{"after it", []*hold{of("a", 1, 0, 1200, 1300, 0), of("b", 2, 0, 1250, 1300, 0)}, false},
	} {
		if got := w.excuse(tc.holds); got != tc.want {
			t.Errorf("two grants %s are excused: %v", tc.name, got)
		}
	}
}

func TestAForgottenTakeMayBeGivenBackAfterTheWindow(t *testing.T) {
	w := windows{spans: []span{{1000 * ms, 1010 * ms}}, lease: 100 * ms}
	two := []*hold{of("b", 0, 1500, 1550, 1600, 1601), of("c", 0, 1510, 1560, 1600, 1601)}
	for _, tc := range []struct {
		name  string
		taken *hold
		want  bool
	}{
		{"before them", of("a", 0, 500, 510, 520, 530), false},
		{"beside them", of("a", 0, 900, 910, 920, 1580), true},
		{"and was taken after the window", of("a", 0, 1200, 1210, 1220, 1580), false},
		{"at a time that is not known", ending(unknown, of("a", 0, 900, 910, 920, 930)), true},
		{"long before", ending(unknown, of("a", 0, 900-600_000, 910-600_000, 920-600_000, 930-600_000)), false},
		{"never", ending(gone, of("a", 0, 900, 910, 920, 930)), false},
	} {
		if got := w.counting(append(two, tc.taken)).excuse(two); got != tc.want {
			t.Errorf("what was taken is given back %s: two grants are excused: %v", tc.name, got)
		}
	}
}

func TestAReaderMayHaveNoTokenAfterALoss(t *testing.T) {
	w := windows{spans: []span{{1000 * ms, 1010 * ms}}, lease: 100 * ms}
	writer, reader := amounting(everybody, of("w", 7, 0, 1, 2, 3)), of("r", 0, 1200, 1201, 1202, 1203)
	for _, part := range w.part([]*hold{writer, reader}) {
		for _, h := range histories("o", rules["rw"], part, testLease) {
			if got := h.check(); got != porcupine.Ok {
				t.Errorf("a history is %s%s", got, h.explain())
			}
		}
	}
}

func TestHistoriesAreCut(t *testing.T) {
	var holds []*hold
	for i := range int64(2*historyHolds + 10) {
		holds = append(holds, of("a", i+1, 10*i, 10*i+1, 10*i+2, 10*i+3))
	}
	parts := histories("o", rules["mutex"], holds, testLease)
	if len(parts) != 3 {
		t.Fatalf("%d parts", len(parts))
	}
	for _, h := range parts {
		if len(h.operations) > 2*historyHolds || h.check() != porcupine.Ok {
			t.Errorf("a part of %d operations is %s", len(h.operations), h.check())
		}
	}
	// A second holder comes right after the cut, and the last holder before the cut has not left.
	holds[historyHolds-1].last, holds[historyHolds-1].releasing, holds[historyHolds-1].end = 1<<60, 1<<60, 1<<60
	if got := histories("o", rules["mutex"], holds, testLease)[1].check(); got != porcupine.Illegal {
		t.Errorf("a hold across a cut is forgotten: %s", got)
	}
}

func TestTheRegisterRefusesAnOvertakenHolder(t *testing.T) {
	o := &object{rule: rules["mutex"]}
	a, b := of("a", 1, 0, 1, 2, 3), of("b", 2, 0, 4, 5, 6)
	read := o.enter(a)
	if got := o.enter(b); got.Stale || got.Value != 0 {
		t.Errorf("b reads %+v", got)
	}
	if got := o.write(a, read.Value+1); !got.Stale || o.fenced != 1 || o.stale != 0 {
		t.Errorf("a, overtaken, writes: %+v", got)
	}
	if got := o.write(b, 1); got.Stale || o.stale != 0 {
		t.Errorf("b writes: %+v", got)
	}
	// Two holds have the same token: the register cannot tell them apart, but the oracle can.
	if o.write(b, 1); o.stale != 1 {
		t.Error("a lost update is not noticed")
	}
}

func TestLatchHistories(t *testing.T) {
	down := func(call, at, left int64) count { return count{call: call, at: at, left: left} }
	pass := func(call, at int64) count { return count{call: call, at: at, wait: true} }
	for _, tc := range []struct {
		name   string
		counts []count
		want   porcupine.CheckResult
	}{
		{"exact", []count{down(1, 2, 1), down(1, 3, 0), pass(2, 4)}, porcupine.Ok},
		{"one counted twice", []count{down(1, 2, 0), down(3, 4, 0), pass(5, 6)}, porcupine.Illegal},
		{"passed before zero", []count{down(1, 2, 1), pass(2, 3), down(4, 5, 0)}, porcupine.Illegal},
		{"one is not known", []count{{call: 1, at: 2, unknown: true}, down(3, 4, 0), pass(4, 5)}, porcupine.Ok},
	} {
		if got := latchHistory("l", 2, tc.counts).check(); got != tc.want {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
}

func TestHandovers(t *testing.T) {
	holds := []*hold{
		of("a", 1, 0, 1, 5, 6),
		waiting(of("b", 2, 2, 9, 10, 11)),                 // b waited, and got the lock after 3 ms
		of("e", 3, 2, 12, 13, 14),                         // e did not wait: a try is no hand-over
		ending(lost, waiting(of("c", 4, 20, 21, 22, 30))), // c came when the lock was free
		waiting(of("d", 5, 2, 200, 201, 202)),             // after a loss there is nothing to report
	}
	got := handovers("o", holds, windows{}, nil)
	if len(got) != 1 || got[0].took != 3*time.Millisecond || got[0].lane != "b" {
		t.Errorf("%+v", got)
	}
}

func TestSights(t *testing.T) {
	seen := changes{
		{10, glimpse{standing, "a"}}, {20, glimpse{unheld, ""}}, {30, glimpse{reserved, "b"}},
		{40, glimpse{unseen, ""}}, {50, glimpse{standing, "b"}}, {70, glimpse{standing, "c"}},
	}
	for _, tc := range []struct {
		from, to int64
		want     [sights]time.Duration
		longest  time.Duration
	}{
		{0, 5, [sights]time.Duration{unseen: 5}, 0},
		{15, 25, [sights]time.Duration{standing: 5, unheld: 5}, 5},
		{0, 100, [sights]time.Duration{unseen: 20, unheld: 10, reserved: 10, standing: 60}, 40},
		{60, 80, [sights]time.Duration{standing: 20}, 10},
		{80, 95, [sights]time.Duration{standing: 15}, 15},
	} {
		if got := seen.during(tc.from, tc.to); got != tc.want {
			t.Errorf("from %d to %d: %v, want %v", tc.from, tc.to, got, tc.want)
		}
		if got := seen.longest(tc.from, tc.to); got != tc.longest {
			t.Errorf("from %d to %d: one owner for %v, want %v", tc.from, tc.to, got, tc.longest)
		}
	}
	if got := changes(nil).during(3, 7); got[unseen] != 4 {
		t.Errorf("without a look: %v", got)
	}
}

// One server that is not sure, a former master, must not make a lock free. It must also not keep a
// majority from being enough.
func TestTogether(t *testing.T) {
	is := func(all ...sight) (on []glimpse) {
		for _, s := range all {
			on = append(on, glimpse{sight: s})
		}
		return on
	}
	for _, tc := range []struct {
		on    []glimpse
		agree int
		want  sight
	}{
		{is(unseen, unseen), 1, unseen},
		{is(unseen, unheld), 1, unheld},
		{is(standing, unheld), 1, standing},
		{is(reserved, unseen), 1, reserved},
		{is(standing, unheld, unheld), 2, unheld},
		{is(standing, unseen, unheld), 2, standing},
	} {
		if got := together(tc.on, tc.agree).sight; got != tc.want {
			t.Errorf("%v, %d must agree: %d, want %d", tc.on, tc.agree, got, tc.want)
		}
	}
}

func TestLostWakeUpsAreToldFromLeasesThatRanOut(t *testing.T) {
	const lease = 2 * time.Second
	for _, tc := range []struct {
		name string
		handover
		stood            time.Duration // how long the waiter's process stood still
		lost, violations int
	}{
		{"two leases ran out beside a kill", handover{took: 9 * time.Second, shadow: true, kept: 5 * time.Second,
			spent: [sights]time.Duration{standing: 9 * time.Second}}, 0, 0, 0},
		{"it was free beside a kill", handover{took: 9 * time.Second, shadow: true,
			spent: [sights]time.Duration{unheld: 9 * time.Second}}, 0, 1, 1},
		{"one had it for longer than anything is kept", handover{took: 12 * time.Second, shadow: true, kept: 12 * time.Second,
			spent: [sights]time.Duration{standing: 12 * time.Second}}, 0, 0, 1},
		{"no fault explains it", handover{took: 5 * time.Second,
			spent: [sights]time.Duration{unseen: 5 * time.Second}}, 0, 1, 1},
		{"it was free for long, and no fault explains it", handover{took: 5 * time.Second,
			spent: [sights]time.Duration{unheld: 5 * time.Second}}, 0, 2, 2},
		{"a process stood still for a part of it", handover{took: 5 * time.Second,
			spent: [sights]time.Duration{unheld: 5 * time.Second}}, time.Second, 0, 0},
	} {
		v := &verdict{report: &report{Kinds: map[string]*kindReport{}}}
		tc.lane, v.stood = "1.mutex.0", map[string][]span{"1": {{0, int64(tc.stood)}}, "2": {{0, int64(time.Hour)}}}
		tc.object = "mutex-0"
		v.handovers = []handover{tc.handover}
		v.wakeUps(lease)
		if v.LostWakeUps != tc.lost || len(v.Violations) != tc.violations {
			t.Errorf("%s: %d lost wake-ups, %q", tc.name, v.LostWakeUps, v.Violations)
		}
	}
}

func TestARunThatTriedTooLittleFails(t *testing.T) {
	long := 2 * time.Minute
	s := &soak{began: time.Unix(0, 0), ended: time.Unix(0, 0).Add(long), warming: time.Second, warm: tally{grants: 1000}}
	s.config.Kinds, s.config.Faults = []string{"mutex"}, []string{"reply lost"}
	s.config.Pauses = 1
	for _, tc := range []struct {
		name           string
		grants, faults int
		want           int
	}{
		{"enough", 10_000, 1000, 0},
		{"too few grants", 100, 1000, 1},
		{"too few faults", 10_000, 10, 1},
		{"none of a class of faults, none of a kind of lock", 0, 0, 4},
	} {
		v := &verdict{report: &report{Kinds: map[string]*kindReport{}, FaultsByClass: map[string]int{"reply lost": tc.faults}}}
		v.Grants, v.Faults, v.kind("mutex").Grants = tc.grants, tc.faults, tc.grants
		if v.enough(s); len(v.Violations) != tc.want {
			t.Errorf("%s: %q, want %d", tc.name, v.Violations, tc.want)
		}
	}
}

func TestALossIsLateButForStarvation(t *testing.T) {
	late := ending(lost, of("1.mutex.0", 1, 0, 1, 2, 3))
	late.deadline, late.told = 1000*ms, 1500*ms
	stalls := map[string][]span{"1": {{900 * ms, 1490 * ms}}, "2": {{0, 5000 * ms}}}
	got := signals([]*hold{late}, stalls)
	if len(got) != 1 || got[0].late != 500*time.Millisecond || got[0].starved != 490*time.Millisecond {
		t.Errorf("%+v", got)
	}
}

func TestNothingIsGrantedAfterAnOutage(t *testing.T) {
	const at = 10_000
	for _, tc := range []struct {
		name    string
		enter   int64 // in ms
		strikes []strike
		want    int
	}{
		{"soon", at + 500, nil, 0},
		{"late", at + 5000, nil, 1},
		{"late, as the next fault came first", at + 5000, []strike{{"server frozen", (at + 900) * ms, (at + 4000) * ms}}, 0},
		{"late, and the next fault came later still", at + 5000, []strike{{"server frozen", (at + 4000) * ms, (at + 4500) * ms}}, 1},
	} {
		s := &soak{log: newLog(), referee: &referee{objects: map[string]*object{
			"mutex-0": {name: "mutex-0", holds: []*hold{of("a", 1, 0, tc.enter, tc.enter+1, tc.enter+2)}},
		}}}
		s.log.recoveries, s.log.strikes = []recovery{{"server killed", at * ms}}, tc.strikes
		v := &verdict{report: &report{}}
		if v.recoveries(s); len(v.Violations) != tc.want {
			t.Errorf("%s: %q, want %d", tc.name, v.Violations, tc.want)
		}
	}
}
