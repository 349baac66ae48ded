// Package report keeps what was measured, and makes tables and charts of it.
package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/crew"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

// Results are comparisons, one for each workload, in the order of the workloads. Also has those that
// were made on other servers.
type Results struct {
	Comparisons []Comparison `json:"comparisons"`
	Also        []Comparison `json:"also,omitempty"`
}

// Comparison is one workload that all contenders did in turn, round after round. Its figures may be
// compared with each other, but not with the figures of another Comparison.
type Comparison struct {
	Workload   string      `json:"workload"`
	Date       string      `json:"date"`
	Moment     *Moment     `json:"moment,omitempty"` // nil: measured before it was noted
	Machine    Machine     `json:"machine"`
	Quick      bool        `json:"quick"`
	Seconds    float64     `json:"seconds"` // how long each round was measured
	Contenders []Contender `json:"contenders"`
}

// Moment is when a workload was measured, of what, and on how busy a machine.
type Moment struct {
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended"`
	Run    time.Time `json:"run"`    // when the run began that it belongs to
	Commit string    `json:"commit"` // "" outside a repository
	Dirty  bool      `json:"dirty"`  // whether the sources were not those of the commit
	Rounds int       `json:"rounds"` // how many each contender was to do
	Load   float64   `json:"load"`   // of the machine when it began, as uptime has it; -1: unknown
	Before int       `json:"before"` // how many measurements of the same commit this one takes the place of
}

// Machine describes the machine of the measurement.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
	Name  string `json:"server,omitempty"` // of the server, "" for Redis
	Redis string `json:"redis"`            // its version
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

// Save writes the results, a line for each comparison.
func (r *Results) Save(path string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	text = bytes.ReplaceAll(text, []byte(`{"workload":`), []byte("\n"+`{"workload":`))
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Merge puts a comparison in the place of an older comparison of the same workload, whichever of
// them is the better one. It notes how many of the same commit went before. order has the names of
// all workloads.
func (r *Results) Merge(c Comparison, order []string) {
	r.Comparisons = merge(r.Comparisons, c, order, func(Machine) bool { return true })
}

// MergeAlso does the same for a comparison on another server than that of the main figures.
func (r *Results) MergeAlso(c Comparison, order []string) {
	r.Also = merge(r.Also, c, order, func(m Machine) bool { return m.Server() == c.Machine.Server() })
}

func merge(all []Comparison, c Comparison, order []string, same func(Machine) bool) []Comparison {
	all = slices.DeleteFunc(all, func(old Comparison) bool {
		if old.Workload != c.Workload || !same(old.Machine) {
			return false
		}
		if old.Moment != nil && c.Moment != nil && old.Moment.Commit == c.Moment.Commit && old.Quick == c.Quick {
			c.Moment.Before = old.Moment.Before + 1
		}
		return true
	})
	all = append(all, c)
	slices.SortStableFunc(all, func(a, b Comparison) int {
		return cmp.Or(slices.Index(order, a.Workload)-slices.Index(order, b.Workload),
			cmp.Compare(a.Machine.Server(), b.Machine.Server()))
	})
	return all
}

// Server returns the server's name and version.
func (m Machine) Server() string { return cmp.Or(m.Name, "Redis") + " " + m.Redis }

// Servers returns the other servers of which there are figures, in the order of their names.
func (r *Results) Servers() (names []string) {
	for _, c := range r.Also {
		if name := c.Machine.Server(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// On returns the results on another server, as if they were the main ones.
func (r *Results) On(server string) *Results {
	on := new(Results)
	for _, c := range r.Also {
		if c.Machine.Server() == server {
			on.Comparisons = append(on.Comparisons, c)
		}
	}
	return on
}

// Add notes a round of one contender: its figures, or the reason why there are none.
func (c *Comparison) Add(contender string, figures crew.Figures, err error) {
	round := Round{Figures: kept(figures)}
	if err != nil {
		round.Failed = err.Error()
	}
	for i := range c.Contenders {
		if c.Contenders[i].Name == contender {
			c.Contenders[i].Rounds = append(c.Contenders[i].Rounds, round)
		}
	}
}

// kept returns the figures that the pages may show, with six digits. Where there are figures per operation, those per
// second say nothing more.
func kept(figures crew.Figures) crew.Figures {
	all := make(crew.Figures, len(figures))
	_, rated := figures[crew.ClientPerOp]
	for name, v := range figures {
		perSecond := name == crew.CommandsPerSecond || name == crew.ClientPerSecond || name == crew.ServerPerSecond
		if name == crew.Samples || name == crew.BytesPerOp || rated && perSecond {
			continue
		}
		if rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64); err == nil {
			all[name] = rounded
		}
	}
	return all
}

// Drop leaves a contender out.
func (c *Comparison) Drop(contender string) {
	c.Contenders = slices.DeleteFunc(c.Contenders, func(old Contender) bool { return old.Name == contender })
}

// Spread is the median of a figure over several rounds, and its 95 % confidence interval. Sure is
// false if there were too few rounds for that; Low and High are then the least and the largest.
type Spread struct {
	Median, Low, High float64
	Sure              bool
}

func spreadOf(values []float64) (Spread, bool) {
	if len(values) == 0 {
		return Spread{}, false
	}
	low, high, sure := measure.Interval(values)
	return Spread{measure.Median(values), low, high, sure}, true
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

// Most returns the largest value of a figure in any round; false if there is none.
func (c Contender) Most(figure string) (most float64, ok bool) {
	for _, v := range c.of(figure) {
		if !ok || v > most {
			most, ok = v, true
		}
	}
	return most, ok
}

// Failed returns why the contender failed in the first round in which it did, and in how many it
// did. why is "" if it never failed.
func (c Contender) Failed() (why string, rounds int) {
	for _, round := range c.Rounds {
		if round.Failed != "" {
			why = cmp.Or(why, round.Failed)
			rounds++
		}
	}
	return why, rounds
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

// quick reports whether a workload was only looked at.
func (r *Results) quick(workload string) bool {
	return slices.ContainsFunc(r.Comparisons, func(c Comparison) bool { return c.Workload == workload && c.Quick })
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
