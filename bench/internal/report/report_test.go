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
	if err := r.Save(path); err != nil {
		t.Fatal(err)
	}
	read, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	x := read.find("a", "x")
	if s, ok := x.Spread(crew.PerSecond); !ok || s != (Spread{1.5, 1, 2}) || x.Failed() != "hung: it waits" {
		t.Errorf("%+v, %v, %q", s, ok, x.Failed())
	}
}

func TestARatioIsThatOfEachRound(t *testing.T) {
	var r Results
	// The machine is half as fast in the second round.
	r.Merge(measured("a", map[string][]float64{"x": {20, 10, 22}, "y": {10, 5, 10}}), order)
	if s, ok := r.Ratio("a", crew.PerSecond, "x", "y"); !ok || s != (Spread{2, 2, 2.2}) {
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

func TestATargetIsMetMissedOrNotMeasured(t *testing.T) {
	var r Results
	names := []string{work.Pairs(16), work.Pairs(256)}
	r.Merge(measured(work.Pairs(16), map[string][]float64{peer.Holdfast: {106}, peer.Redsync: {90}, peer.Rueidislock: {100}}), names)
	r.Merge(measured(work.Pairs(256), map[string][]float64{peer.Holdfast: {106}, peer.Redislock: {100}}), names)
	table := r.Verdicts()
	for _, want := range []string{
		"16 goroutines | 1.05x the best peer | 1.06x (1.06 to 1.06) rueidislock | yes |",
		"256 goroutines | 1.2x the best peer | 1.06x (1.06 to 1.06) redislock | **no** |",
		"2048 goroutines | 1.5x the best peer | not measured |  |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
}

func TestThePageKeepsItsWords(t *testing.T) {
	page := "words\n<!-- begin x -->\nold\n<!-- end x -->\nmore words\n"
	got, err := Fill(page, "x", "new\n")
	if want := "words\n<!-- begin x -->\nnew\n<!-- end x -->\nmore words\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Fill(page, "y", "new"); err == nil {
		t.Error("a page without the markers was filled")
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

func TestAPageIsRendered(t *testing.T) {
	dir := t.TempDir()
	page := ""
	for _, part := range []string{"verdicts", "contenders", "tables"} {
		page += "<!-- begin " + part + " -->\n<!-- end " + part + " -->\n"
	}
	path := filepath.Join(dir, "performance.md")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "performance"), 0o755), os.WriteFile(path, []byte(page), 0o644)); err != nil {
		t.Fatal(err)
	}
	var r Results
	c := measured(work.Pairs(1), map[string][]float64{peer.Holdfast: {50_000, 60_000}})
	c.Contenders = append(c.Contenders, Contender{Name: peer.Redsync})
	c.Add(peer.Redsync, nil, errors.New("hung: it waits"))
	r.Merge(c, []string{work.Pairs(1)})
	if err := r.Render(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| holdfast | v1 | defaults |", "### Uncontended pairs, 1 goroutine",
		"| holdfast | 55.0k (50.0k to 60.0k) |", "| redsync | hung: it waits |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if charts, _ := filepath.Glob(filepath.Join(dir, "performance", "*.svg")); len(charts) != 4 {
		t.Errorf("charts: %q", charts)
	}
}
