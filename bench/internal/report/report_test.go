package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/bench/internal/crew"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/bench/internal/work"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// measured returns a comparison in which each contender had these rates, one in each round.
func measured(workload string, rates map[string][]float64) Comparison {
	c := Comparison{Workload: workload, Date: "2026-01-02", Seconds: 2}
	for name, rounds := range rates {
		c.Contenders = append(c.Contenders, Contender{Name: name, Version: "v1"})
		for _, rate := range rounds {
			c.Add(name, crew.Figures{crew.PerSecond: rate, crew.ClientPerOp: 1}, nil)
		}
	}
	return c
}

var order = []string{"a", "b", "c"}

func TestANewComparisonTakesThePlaceOfTheOld(t *testing.T) {
	var r Results
	r.Merge(measured("c", map[string][]float64{"x": {1}}), order)
	r.Merge(measured("a", map[string][]float64{"x": {2}, "gone": {2}}), order)
	r.Merge(measured("a", map[string][]float64{"x": {3}}), order)
	if len(r.Comparisons) != 2 || r.Comparisons[0].Workload != "a" || r.Comparisons[1].Workload != "c" {
		t.Fatalf("%+v", r)
	}
	if s, ok := r.Of("a", "x", crew.PerSecond); !ok || s.Median != 3 {
		t.Errorf("a of x is %+v, %v", s, ok)
	}
	if _, ok := r.Of("a", "gone", crew.PerSecond); ok {
		t.Error("what was measured before is still there")
	}
}

func TestResultsAreReadAsTheyWereWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	if r, err := Load(path); err != nil || len(r.Comparisons) != 0 {
		t.Fatalf("of a file that is not there: %+v, %v", r, err)
	}
	var r Results
	c := measured("a", map[string][]float64{"x": {1, 2}})
	c.Add("x", nil, errors.New("hung: it waits"))
	r.Merge(c, order)
	redistest.Must(t, r.Save(path))
	read, err := Load(path)
	redistest.Must(t, err)
	x := read.find("a", "x")
	why, rounds := x.Failed()
	if s, ok := x.Spread(crew.PerSecond); !ok || s != (Spread{1.5, 1, 2, false}) || why != "hung: it waits" || rounds != 1 {
		t.Errorf("%+v, %v, %q in %d", s, ok, why, rounds)
	}
}

func TestARatioIsThatOfEachRound(t *testing.T) {
	var r Results
	// The machine is half as fast in the second round.
	r.Merge(measured("a", map[string][]float64{"x": {20, 10, 22}, "y": {10, 5, 10}}), order)
	if s, ok := r.Ratio("a", crew.PerSecond, "x", "y"); !ok || s != (Spread{2, 2, 2.2, false}) {
		t.Errorf("%+v, %v", s, ok)
	}
	if _, ok := r.Ratio("a", crew.PerSecond, "x", "z"); ok {
		t.Error("a ratio to one who was not measured")
	}
	if best := r.Best("a", crew.PerSecond, false, "y", "x", "z"); best != "x" {
		t.Errorf("the best is %q", best)
	}
	if best := r.Best("a", crew.PerSecond, true, "y", "x", "z"); best != "y" {
		t.Errorf("the least is %q", best)
	}
}

// rounds returns nine rounds about v, from 4 % less to 4 % more.
func rounds(v float64) (all []float64) {
	for i := range 9 {
		all = append(all, v*(0.96+0.01*float64(i)))
	}
	return all
}

func TestATargetIsMetMissedUndecidedOrNotMeasured(t *testing.T) {
	var r Results
	names := []string{work.Pairs(16), work.Pairs(256), work.ReadWrite, work.Semaphore, work.Fair(1000)}
	even := []float64{100, 100, 100, 100, 100, 100, 100, 100, 100}
	r.Merge(measured(work.Pairs(16), map[string][]float64{peer.Holdfast: rounds(120), peer.Redsync: rounds(90), peer.Rueidislock: even}), names)
	r.Merge(measured(work.Pairs(256), map[string][]float64{peer.Holdfast: rounds(106), peer.Redislock: even}), names)
	r.Merge(measured(work.ReadWrite, map[string][]float64{peer.Holdfast: rounds(101), crew.Redisson: even}), names)
	r.Merge(measured(work.Semaphore, map[string][]float64{peer.Holdfast: {500, 500}, crew.Redisson: {100, 100}}), names)
	wantIn(t, r.Verdicts(),
		"16 goroutines | 1.1x the best peer | 1.20x (1.16–1.24) rueidislock | yes |",
		"256 goroutines | 1.8x the best peer | 1.06x (1.03–1.09) redislock | **no** |",
		"2048 goroutines | 2x the best peer, 3x the best that starves nobody | not measured |  |",
		"ahead of Redisson's | 1.01x (0.98–1.04) redisson | undecided |",
		"ahead of Redisson's | 5x (5–5) redisson | undecided |", // two rounds decide nothing
	)
}

func wantIn(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestWhoStarvesCallersIsNotTheBestOfTheFair(t *testing.T) {
	workload := work.Pairs(2048)
	c := measured(workload, map[string][]float64{peer.Holdfast: rounds(300), peer.Redsync: rounds(200), peer.Redislock: rounds(90)})
	for i := range c.Contenders {
		for _, round := range c.Contenders[i].Rounds {
			round.Figures[crew.Jain] = 0.7
			if round.Figures[crew.Starved] = 0; c.Contenders[i].Name == peer.Redsync {
				round.Figures[crew.Starved] = 7
			}
		}
	}
	var r Results
	r.Merge(c, []string{workload})
	wantIn(t, r.Verdicts(), "1.50x (1.50–1.50) redsync; 3.33x (3.33–3.33) redislock, which starves nobody | **no** | "+
		"starve: redsync 7; bunch: redislock 0.70 |")
}

func TestAnotherServerIsShownWhereItDiffers(t *testing.T) {
	var r Results
	names := []string{work.Pairs(16), work.Pairs(256)}
	rate := func(workload string, v float64) Comparison {
		return measured(workload, map[string][]float64{peer.Holdfast: rounds(v), peer.Redsync: rounds(100)})
	}
	there := func(workload string, v float64) Comparison {
		c := rate(workload, v)
		c.Machine = Machine{Name: "Valkey", Redis: "9"}
		return c
	}
	r.Merge(rate(work.Pairs(16), 200), names)
	r.Merge(rate(work.Pairs(256), 200), names)
	r.MergeAlso(there(work.Pairs(16), 150), names)
	r.MergeAlso(there(work.Pairs(16), 300), names)
	r.MergeAlso(there(work.Pairs(256), 210), names)
	table := r.Verdicts()
	if !strings.Contains(table, "| yes |  | Valkey 9: 3x (3–3) redsync |") || strings.Count(table, "Valkey") != 1 {
		t.Error(table)
	}
}

func TestARowThatIsMeasuredAgainSaysSo(t *testing.T) {
	var r Results
	for range 3 {
		c := measured("a", map[string][]float64{"x": {2}})
		c.Moment = &Moment{Commit: "abc", Load: 0.5}
		r.Merge(c, order)
	}
	wantIn(t, r.Runs(), "- abc, , Redis : a (in the place of 2)\n")
}

func TestWhatMustNotHappenIsJudgedByTheWorstRound(t *testing.T) {
	var r Results
	c := measured("a", map[string][]float64{"x": {1, 1, 1}})
	for i, starved := range []float64{0, 0, 1} {
		c.Contenders[0].Rounds[i].Figures[crew.Starved] = starved
	}
	r.Merge(c, order)
	if got := r.never("a", "x", crew.Starved, 0, "%.0f"); got.Verdict != No || got.Text != "1" {
		t.Errorf("%+v", got)
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 12_345: "12.3k",
		123_456: "123k", 0.012345: "0.01", 0.00012345: "0.00012"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestThePagesAreRendered(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "performance")
	redistest.Must(t, os.Mkdir(folder, 0o755))
	first, second := filepath.Join(dir, "performance.md"), filepath.Join(folder, "measurements.md")
	for path, parts := range map[string][]string{first: {"summary"}, second: {"verdicts", "tables", "contenders", "runs"}} {
		page := "words\n"
		for _, part := range parts {
			page += "<!-- begin " + part + " -->\n<!-- end " + part + " -->\n"
		}
		redistest.Must(t, os.WriteFile(path, []byte(page), 0o644))
	}
	var r Results
	c := measured(work.Pairs(1), map[string][]float64{peer.Holdfast: {50_000, 60_000}})
	c.Contenders = append(c.Contenders, Contender{Name: peer.Redsync})
	c.Add(peer.Redsync, nil, errors.New("hung: it waits"))
	r.Merge(c, []string{work.Pairs(1)})
	redistest.Must(t, r.Render(dir))
	for path, wants := range map[string][]string{
		first: {"words\n", "| pair, 1 goroutine: p50 | not measured | |"},
		second: {"words\n", "| holdfast | v1 | defaults |", "### Uncontended pairs, by goroutines", "| | 1: per s | 1: p50 µs |\n",
			"| holdfast | 55.0k |  |", "- redsync, pairs/1, in 1 of 1 rounds: hung: it waits\n"},
	} {
		text, err := os.ReadFile(path)
		redistest.Must(t, err)
		wantIn(t, string(text), wants...)
	}
	if charts, _ := filepath.Glob(filepath.Join(folder, "*.svg")); len(charts) != 7 {
		t.Errorf("charts: %q", charts)
	}
}

func TestTheTablesHaveAllWorkloads(t *testing.T) {
	shown := make(map[string]bool)
	for _, table := range tables() {
		for _, c := range table.columns {
			if shown[c.workload] = true; c.title == "" || strings.HasSuffix(c.title, ": ") {
				t.Errorf("%s: the figure %s has no title", table.title, c.figure)
			}
		}
	}
	for _, w := range work.All() {
		if !shown[w.Name] && w.Scale == nil {
			t.Errorf("no table has %s", w.Name)
		}
	}
}

func TestFiguresThatNothingShowsAreNotKept(t *testing.T) {
	c := measured("a", map[string][]float64{"x": nil})
	c.Add("x", crew.Figures{crew.PerSecond: 1234567.8, crew.ClientPerOp: 2, crew.ClientPerSecond: 3, crew.Samples: 4}, nil)
	c.Add("x", crew.Figures{crew.ClientPerSecond: 3}, nil)
	rated, idle := c.Contenders[0].Rounds[0].Figures, c.Contenders[0].Rounds[1].Figures
	if len(rated) != 2 || rated[crew.PerSecond] != 1234570 || rated[crew.ClientPerOp] != 2 || len(idle) != 1 {
		t.Errorf("%v, %v", rated, idle)
	}
}
