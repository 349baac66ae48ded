// Package report keeps what was measured, and makes tables and charts of it.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/holdfast-go/holdfast/bench/internal/crew"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

// Results are comparisons, one for each workload, in the order of the workloads.
type Results struct {
	Comparisons []Comparison `json:"comparisons"`
}

// Comparison is one workload that all contenders did in turn, round after round. Its figures may be
// compared with each other, but not with the figures of another Comparison.
type Comparison struct {
	Workload   string      `json:"workload"`
	Date       string      `json:"date"`
	Machine    Machine     `json:"machine"`
	Quick      bool        `json:"quick"`
	Seconds    float64     `json:"seconds"` // how long each round was measured
	Contenders []Contender `json:"contenders"`
}

// Machine describes the machine of the measurement.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
	Redis string `json:"redis"`
}

// Contender has what one contender did.
type Contender struct {
	Name     string  `json:"name"`
	Settings string  `json:"settings,omitempty"`
	Version  string  `json:"version,omitempty"`
	Rounds   []Round `json:"rounds"`
}

// Round is one measurement: its figures, or the reason why there are none.
type Round struct {
	Figures crew.Figures `json:"figures,omitempty"`
	Failed  string       `json:"failed,omitempty"`
}

// Load reads results from a file. If the file does not exist, the results are empty.
func Load(path string) (*Results, error) {
	r := new(Results)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err != nil {
		return nil, fmt.Errorf("results in %s: %w", path, err)
	}
	return r, nil
}

// Save writes the results.
func (r *Results) Save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Merge puts a comparison in the place of an older comparison of the same workload. order has the
// names of all workloads.
func (r *Results) Merge(c Comparison, order []string) {
	r.Comparisons = slices.DeleteFunc(r.Comparisons, func(old Comparison) bool { return old.Workload == c.Workload })
	r.Comparisons = append(r.Comparisons, c)
	slices.SortStableFunc(r.Comparisons, func(a, b Comparison) int {
		return slices.Index(order, a.Workload) - slices.Index(order, b.Workload)
	})
}

// Add notes a round of one contender: its figures, or the reason why there are none.
func (c *Comparison) Add(contender string, figures crew.Figures, err error) {
	round := Round{Figures: figures}
	if err != nil {
		round.Failed = err.Error()
	}
	for i := range c.Contenders {
		if c.Contenders[i].Name == contender {
			c.Contenders[i].Rounds = append(c.Contenders[i].Rounds, round)
		}
	}
}

// Drop leaves a contender out.
func (c *Comparison) Drop(contender string) {
	c.Contenders = slices.DeleteFunc(c.Contenders, func(old Contender) bool { return old.Name == contender })
}

// Spread is the median, the minimum and the maximum of a figure over several rounds.
type Spread struct{ Median, Min, Max float64 }

func spreadOf(values []float64) (Spread, bool) {
	if len(values) == 0 {
		return Spread{}, false
	}
	return Spread{measure.Median(values), slices.Min(values), slices.Max(values)}, true
}

// of returns a figure in each round that has it, by the number of the round.
func (c Contender) of(figure string) (values map[int]float64) {
	values = make(map[int]float64)
	for i, round := range c.Rounds {
		if v, ok := round.Figures[figure]; ok {
			values[i] = v
		}
	}
	return values
}

// Spread returns a figure of the contender; false if it has none.
func (c Contender) Spread(figure string) (Spread, bool) {
	var values []float64
	for _, v := range c.of(figure) {
		values = append(values, v)
	}
	return spreadOf(values)
}

// Failed returns why the contender failed in some round, "" if it never did.
func (c Contender) Failed() string {
	for _, round := range c.Rounds {
		if round.Failed != "" {
			return round.Failed
		}
	}
	return ""
}

// find returns what a contender did in a workload. The result is empty if it was not measured.
func (r *Results) find(workload, contender string) Contender {
	for _, comparison := range r.Comparisons {
		if comparison.Workload != workload {
			continue
		}
		for _, c := range comparison.Contenders {
			if c.Name == contender {
				return c
			}
		}
	}
	return Contender{}
}

// Of returns a figure of a contender in a workload; false if there is none.
func (r *Results) Of(workload, contender, figure string) (Spread, bool) {
	return r.find(workload, contender).Spread(figure)
}

// Ratio divides a figure of one contender by the same figure of another contender, round by round:
// in a round both contenders had the same machine.
func (r *Results) Ratio(workload, figure, one, other string) (Spread, bool) {
	others := r.find(workload, other).of(figure)
	var ratios []float64
	for round, v := range r.find(workload, one).of(figure) {
		if o, ok := others[round]; ok && o > 0 {
			ratios = append(ratios, v/o)
		}
	}
	return spreadOf(ratios)
}

// Best returns the contender with the best median. That is the largest median, or the least if less
// is true, for a figure where less is better. Best returns "" if no contender has a median.
func (r *Results) Best(workload, figure string, less bool, among ...string) string {
	best, name := 0.0, ""
	for _, contender := range among {
		s, ok := r.Of(workload, contender, figure)
		if ok && (name == "" || s.Median > best != less) {
			best, name = s.Median, contender
		}
	}
	return name
}
