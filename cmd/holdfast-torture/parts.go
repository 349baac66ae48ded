// Parts: the reports of several runs of one kind, added up.

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// part is one of the runs that a report adds up.
type part struct {
	Command string
	Commit  string
	Began   time.Time
	Took    duration
	Server  string
	Machine string
	Grants  int
	Faults  int
}

// UnmarshalText reads what MarshalText has written.
func (d *duration) UnmarshalText(text []byte) error {
	read, err := time.ParseDuration(string(text))
	*d = duration(read)
	return err
}

// addUp returns one report of the runs whose reports are in the files. The runs must be of one
// topology, ground and tier. Counts are sums. Of times, which cannot be summed, it takes the worst;
// p50 and p99 are the greatest of any run.
func addUp(files []string) (*report, error) {
	var sum *report
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		r := &report{}
		if err := json.Unmarshal(text, r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(r.Parts) > 0 {
			return nil, fmt.Errorf("%s is a sum itself", file)
		}
		r.Parts = []part{{r.Command, r.Commit, r.Began, r.Took, r.Server, r.Machine, r.Grants, r.Faults}}
		if sum == nil {
			sum = r
			continue
		}
		if r.Topology != sum.Topology || r.Ground != sum.Ground || r.Tier != sum.Tier {
			return nil, fmt.Errorf("%s is of another topology, ground or tier", file)
		}
		sum.add(r)
	}
	if sum == nil {
		return nil, fmt.Errorf("no reports to add up")
	}
	sum.Command = ""
	sum.Commit = each(sum.Parts, func(p part) string { return p.Commit })
	sum.Server = each(sum.Parts, func(p part) string { return p.Server })
	sum.Machine = each(sum.Parts, func(p part) string { return p.Machine })
	return sum, nil
}

// each returns what the parts have of something, each value once.
func each(parts []part, of func(part) string) string {
	var all []string
	for _, p := range parts {
		if !slices.Contains(all, of(p)) {
			all = append(all, of(p))
		}
	}
	return strings.Join(all, "; ")
}

// add adds another run.
func (r *report) add(other *report) {
	r.Parts = append(r.Parts, other.Parts...)
	if other.Began.Before(r.Began) {
		r.Began = other.Began
	}
	r.Took += other.Took
	r.Grants += other.Grants
	r.Faults += other.Faults
	for name, k := range other.Kinds {
		r.kind(name).add(k)
	}
	addCounts(&r.Refused, other.Refused)
	addCounts(&r.Endings, other.Endings)
	addCounts(&r.FaultsByClass, other.FaultsByClass)
	r.Strikes = append(r.Strikes, other.Strikes...)
	r.Overlaps += other.Overlaps
	r.UnpromisedOverlaps += other.UnpromisedOverlaps
	r.Writes += other.Writes
	r.StaleWrites += other.StaleWrites
	r.Fenced += other.Fenced
	r.LostWakeUps += other.LostWakeUps
	r.Once.add(other.Once)
	r.Barrier.add(other.Barrier)
	r.Histories.Checked += other.Histories.Checked
	r.Histories.Operations += other.Histories.Operations
	r.Losses.add(other.Losses)
	r.CalmHandovers.add(other.CalmHandovers)
	r.Handovers.add(other.Handovers)
	r.HandoversInFaults.add(other.HandoversInFaults)
	r.Longest = append(r.Longest, other.Longest...)
	slices.SortFunc(r.Longest, func(a, b longWait) int { return int(b.Took - a.Took) })
	r.Longest = r.Longest[:min(len(r.Longest), longest)]
	r.Recovery = max(r.Recovery, other.Recovery)
	r.Violations = append(r.Violations, other.Violations...)
	r.Exceeded = append(r.Exceeded, other.Exceeded...)
}

func (k *kindReport) add(other *kindReport) {
	k.Grants += other.Grants
	k.WorstWait = max(k.WorstWait, other.WorstWait)
	k.WorstHandover = max(k.WorstHandover, other.WorstHandover)
	k.SlowHandovers += other.SlowHandovers
	k.Unpromised += other.Unpromised
}

func (l *lossReport) add(other lossReport) {
	l.Told += other.Told
	l.ByServer += other.ByServer
	l.InTime += other.InTime
	l.Starved += other.Starved
	l.Late += other.Late
	l.Worst = max(l.Worst, other.Worst)
	l.AfterResume = max(l.AfterResume, other.AfterResume)
}

func (s *spread) add(other spread) {
	s.Count += other.Count
	s.P50, s.P99, s.Worst = max(s.P50, other.P50), max(s.P99, other.P99), max(s.Worst, other.Worst)
}

func addCounts(to *map[string]int, from map[string]int) {
	if *to == nil {
		*to = map[string]int{}
	}
	for name, n := range from {
		(*to)[name] += n
	}
}
