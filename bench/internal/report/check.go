// This file compares a figure with its bound, and says whether the rounds decide.

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/crew"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
)

// Verdict says whether a bound is met.
type Verdict int

// The verdicts, from the best to the worst. A row of several checks has the worst of theirs.
const (
	Shown     Verdict = iota // the check has no bound: its figure is for comparison
	Yes                      // the whole interval is on the right side of the bound
	Undecided                // the interval straddles the bound, or the rounds are too few for one
	No                       // the whole interval is on the wrong side
)

func (v Verdict) String() string { return [...]string{"", "yes", "undecided", "**no**"}[v] }

// Check compares one figure with its bound.
type Check struct {
	Text    string // the figure; "" if another check says the same
	Verdict Verdict
	Known   bool    // whether the figure was measured
	Ratio   float64 // the figure itself, if it is a ratio to another contender; otherwise 0
}

// atLeast judges a figure that should be as large as the bound.
func (s Spread) atLeast(bound float64) Verdict { return s.judge(s.Low >= bound, s.High < bound) }

// atMost judges a figure that should be no larger than the bound.
func (s Spread) atMost(bound float64) Verdict { return s.judge(s.High <= bound, s.Low > bound) }

func (s Spread) judge(right, wrong bool) Verdict {
	switch {
	case !s.Sure || !right && !wrong:
		return Undecided
	case right:
		return Yes
	}
	return No
}

// starves reports whether callers of a contender had no grant at all, in most of the rounds. What
// does not count its callers starves none.
func (r *Results) starves(workload, contender string) bool {
	s, _ := r.Of(workload, contender, crew.Starved)
	return s.Median > 0
}

// times checks that the rate of one is at least factor times the best rate of the others, and fair
// times the best of those that starve nobody.
func (r *Results) times(workload string, factor, fair float64, one string, others ...string) []Check {
	judge := func(other string, factor float64) Check {
		s, ok := r.Ratio(workload, crew.PerSecond, one, other)
		return Check{ratio(s, other), s.atLeast(factor), ok, s.Median}
	}
	return r.beside(workload, crew.PerSecond, false, factor, fair, others, judge)
}

// lessThan checks that a figure of Holdfast is at most factor times the best figure of the others.
// It is for a figure where less is better.
func (r *Results) lessThan(workload, figure string, factor float64, others ...string) Check {
	best := r.Best(workload, figure, true, others...)
	s, ok := r.Ratio(workload, figure, peer.Holdfast, best)
	return Check{ratio(s, best), s.atMost(factor), ok, s.Median}
}

// beside returns two checks: against the best of the others, and against the best that starves nobody.
func (r *Results) beside(workload, figure string, less bool, factor, fair float64, others []string,
	judge func(other string, factor float64) Check) []Check {
	best := r.Best(workload, figure, less, others...)
	kind := r.Best(workload, figure, less, slices.DeleteFunc(slices.Clone(others),
		func(name string) bool { return r.starves(workload, name) })...)
	all := judge(best, factor)
	switch {
	case kind == best && fair > factor:
		return []Check{judge(best, fair), {Known: true}}
	case kind == best:
		return []Check{all, {Known: true}}
	case kind == "":
		return []Check{all, {Text: "all others starve some", Known: all.Known}}
	}
	second := judge(kind, fair)
	second.Text += ", which starves nobody"
	return []Check{all, second}
}

// beyond compares without a bound.
func (r *Results) beyond(workload, figure, one, other, format string) Check {
	s, ok := r.Ratio(workload, figure, one, other)
	return Check{fmt.Sprintf(format, s.Median), Shown, ok, s.Median}
}

func (r *Results) atLeast(workload, contender, figure string, bound float64, format string) Check {
	s, ok := r.Of(workload, contender, figure)
	return Check{Text: fmt.Sprintf(format, s.Median), Verdict: s.atLeast(bound), Known: ok}
}

func (r *Results) atMost(workload, contender, figure string, bound float64, format string) Check {
	s, ok := r.Of(workload, contender, figure)
	return Check{Text: fmt.Sprintf(format, s.Median), Verdict: s.atMost(bound), Known: ok}
}

// never checks that a figure is at most bound in every round. It is for what must not happen, where
// a median would hide that it did.
func (r *Results) never(workload, contender, figure string, bound float64, format string) Check {
	most, ok := r.find(workload, contender).Most(figure)
	c := Check{Text: fmt.Sprintf(format, most), Verdict: Yes, Known: ok}
	switch {
	case most > bound:
		c.Verdict = No
	case r.quick(workload):
		c.Verdict = Undecided // it was done less often, or with less
	}
	return c
}

// bunches is the index of Jain below which some callers have many times what others have.
const bunches = 0.8

// Unfair says which of the contenders starve some of their callers, and which others serve their
// callers very unevenly.
func (r *Results) Unfair(workload string, contenders ...string) string {
	var starve, bunch []string
	for _, name := range contenders {
		starved, _ := r.Of(workload, name, crew.Starved)
		jain, ok := r.Of(workload, name, crew.Jain)
		switch {
		case r.starves(workload, name):
			starve = append(starve, fmt.Sprintf("%s %s", name, number(starved.Median)))
		case ok && jain.Median < bunches:
			bunch = append(bunch, fmt.Sprintf("%s %.2f", name, jain.Median))
		}
	}
	var parts []string
	if starve != nil {
		parts = append(parts, "starve: "+strings.Join(starve, ", "))
	}
	if bunch != nil {
		parts = append(parts, "bunch: "+strings.Join(bunch, ", "))
	}
	return strings.Join(parts, "; ")
}

func ratio(s Spread, other string) string {
	return fmt.Sprintf("%s (%s–%s) %s", factor(s.Median), number(s.Low), number(s.High), other)
}

func factor(v float64) string { return number(v) + "x" }
