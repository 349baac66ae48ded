package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/crew"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/bench/internal/report"
	"github.com/holdfast-go/holdfast/bench/internal/work"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	crew.Child()
	redistest.Main(m)
}

func find(t *testing.T, name string) work.Workload {
	t.Helper()
	w, err := work.Find(name)
	redistest.Must(t, err)
	return w
}

func TestAPlanFollowsTheOptionsAndTheWorkload(t *testing.T) {
	for _, tc := range []struct {
		what     string
		options  options
		workload string
		rounds   int
		window   time.Duration
		java     time.Duration
	}{
		{"as every other", options{java: true}, work.Pairs(16), fullRounds, fullWindow, crew.WarmFor(false)},
		{"without Java", options{}, work.Pairs(16), fullRounds, fullWindow, 0},
		{"on another server", options{java: true, also: "x"}, work.Pairs(16), fullRounds, fullWindow, 0},
		{"a time of its own", options{}, work.HandOff, fullRounds, 2 * time.Second, 0},
		{"fewer rounds", options{}, work.Renewal, 6, 10 * time.Second, 0},
		{"quick", options{quick: true, java: true}, work.Pairs(1), quickRounds, quickWindow, crew.WarmFor(true)},
		{"quick, and fewer than quick", options{quick: true}, work.ScaleHeld, 1, 12 * time.Second, 0},
		{"as told", options{quick: true, rounds: 20}, work.Renewal, 20, 10 * time.Second, 0},
	} {
		w := find(t, tc.workload)
		if p := tc.options.planOf(w); p.rounds != tc.rounds || p.window != tc.window || p.redisson != tc.java {
			t.Errorf("%s: %+v", tc.what, p)
		}
	}
}

// TestARunOfAllTakesAnHour fails when a workload is added that makes the whole run too long for
// anybody to do it.
func TestARunOfAllTakesAnHour(t *testing.T) {
	if d := (options{java: true}).length(work.All()); d > 67*time.Minute {
		t.Errorf("all workloads take %v", d)
	}
}

// resuming returns a comparer whose run resumes on the machine m.
func resuming(m report.Machine, began time.Time) *comparer {
	return &comparer{options: options{resume: true, only: regexp.MustCompile("")}, results: new(report.Results),
		this: identity{began: began, commit: "abc"}, machine: m, order: []string{"a", "b", "c"}}
}

func TestAResumedRunLeavesOutWhatIsMeasured(t *testing.T) {
	m := report.Machine{Redis: "7"}
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	workloads := []work.Workload{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}
	measured := func(name, commit string, run time.Time, rounds int, m report.Machine) report.Comparison {
		return report.Comparison{Workload: name, Machine: m, Moment: &report.Moment{Run: run, Commit: commit, Rounds: rounds}}
	}
	c := resuming(m, noon.Add(time.Hour))
	c.results.Comparisons = []report.Comparison{
		measured("a", "abc", noon, fullRounds, m),
		measured("b", "abc", noon.Add(-time.Hour), fullRounds, m), // an older run
		measured("c", "def", noon, fullRounds, m),                 // another commit
		measured("d", "abc", noon, 3, m),                          // fewer rounds
		{Workload: "e", Machine: m},                               // before such things were noted
	}
	var todo []string
	for _, w := range c.left(workloads) {
		todo = append(todo, w.Name)
	}
	if !slices.Equal(todo, []string{"b", "c", "d", "e"}) || !c.this.began.Equal(noon) {
		t.Errorf("to do: %q, in the run of %v", todo, c.this.began)
	}

	c = resuming(report.Machine{Redis: "8"}, noon)
	c.results.Comparisons = []report.Comparison{measured("a", "abc", noon, fullRounds, m)}
	if todo := c.left(workloads); len(todo) != len(workloads) {
		t.Errorf("on another server only %d are to do", len(todo))
	}
}

// TestAContenderThatFailsIsARow puts somebody among the contenders who is not known.
func TestAContenderThatFailsIsARow(t *testing.T) {
	redistest.Needs(t)
	w := find(t, work.Pairs(1))
	w.Contenders, w.Redisson = []string{"nobody", peer.Holdfast}, nil
	c := resuming(report.Machine{}, time.Now())
	c.quick, c.rounds, c.file = true, patience+1, filepath.Join(t.TempDir(), "results.json")
	got, err := c.compare(t.Context(), w)
	if err != nil || len(got.Contenders) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	nobody, holdfast := got.Contenders[0], got.Contenders[1]
	if why, failed := nobody.Failed(); failed != patience || len(nobody.Rounds) != patience || why == "" {
		t.Errorf("nobody failed in %d of %d rounds: %s", failed, len(nobody.Rounds), why)
	}
	if why, failed := holdfast.Failed(); failed != 0 || len(holdfast.Rounds) != patience+1 {
		t.Errorf("holdfast failed in %d of %d rounds: %s", failed, len(holdfast.Rounds), why)
	}
	if got.Moment.Commit != "abc" || got.Moment.Ended.IsZero() || got.Machine.Redis == "" {
		t.Errorf("%+v on %+v", got.Moment, got.Machine)
	}
}
