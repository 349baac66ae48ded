// This file makes the tables, and puts them into a page between markers.

package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/crew"
	"github.com/holdfast-go/holdfast/bench/internal/work"
)

// Fill puts a text between the markers <!-- begin NAME --> and <!-- end NAME -->, where NAME is
// name. The text takes the place of what is there.
func Fill(page, name, text string) (string, error) {
	begin, end := "<!-- begin "+name+" -->", "<!-- end "+name+" -->"
	before, rest, ok1 := strings.Cut(page, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return "", fmt.Errorf("the page has no %s followed by %s", begin, end)
	}
	return before + begin + "\n" + strings.TrimSpace(text) + "\n" + end + after, nil
}

// Verdicts returns the table of the targets. It has a column for other servers if there are figures
// of any.
func (r *Results) Verdicts() string {
	var b strings.Builder
	servers := r.Servers()
	b.WriteString("| work | goal | reached | met | peers that starve or bunch callers |")
	if len(servers) > 0 {
		b.WriteString(" otherwise on |")
	}
	b.WriteString("\n|---|---|---|---|---|" + strings.Repeat("---|", min(len(servers), 1)) + "\n")
	for _, t := range Targets() {
		checks := t.Checks(r)
		unfair := ""
		if t.Beside != "" {
			unfair = r.Unfair(t.Beside, everybody...)
		}
		reached, met := sumUp(checks)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |", t.Work, t.AtMost, reached, met, unfair)
		if len(servers) > 0 {
			fmt.Fprintf(&b, " %s |", r.otherwise(t, checks, servers))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// sumUp returns the figures of a row in words, and its verdict: that of the worst check, or "" if
// something was not measured.
func sumUp(checks []Check) (reached, met string) {
	var texts []string
	verdict, known := Shown, true
	for _, c := range checks {
		switch {
		case !c.Known:
			texts = append(texts, "not measured")
			known = false
			continue
		case c.Text != "":
			texts = append(texts, c.Text)
		}
		verdict = max(verdict, c.Verdict)
	}
	if met = verdict.String(); !known && verdict != No {
		met = ""
	}
	return strings.Join(slices.Compact(texts), "; "), met
}

// differs is the share by which a ratio on another server must differ to be shown.
const differs = 0.25

// otherwise returns the ratios of a row that differ on other servers.
func (r *Results) otherwise(t Target, checks []Check, servers []string) string {
	var parts []string
	for _, server := range servers {
		var texts []string
		for i, there := range t.Checks(r.On(server)) {
			if i < len(checks) && there.Known && there.Ratio > 0 && checks[i].Ratio > 0 &&
				math.Abs(there.Ratio/checks[i].Ratio-1) > differs {
				texts = append(texts, there.Text)
			}
		}
		if texts != nil {
			parts = append(parts, server+": "+strings.Join(texts, "; "))
		}
	}
	return strings.Join(parts, ". ")
}

// column is a figure of a workload in the tables.
type column struct{ title, workload, figure string }

// table has a row for each contender of its workloads.
type table struct {
	title   string
	columns []column
}

var titles = map[string]string{
	crew.PerSecond:         "per s",
	crew.P50:               "p50 µs",
	crew.P99:               "p99 µs",
	work.RunsPerKey:        "runs of the work",
	crew.CommandsPerOp:     "commands",
	crew.ClientPerOp:       "client µs",
	crew.ServerPerOp:       "server µs",
	crew.AllocsPerOp:       "allocs",
	work.GoroutinesPerLock: "goroutines",
	work.HeapPerLock:       "heap B",
	crew.CommandsPerSecond: "commands/s",
	crew.ClientPerSecond:   "client µs/s",
}

// of returns a column for each of the figures of a workload. at says which workload, if a table has several.
func of(at, workload string, figures ...string) (all []column) {
	for _, figure := range figures {
		title := titles[figure]
		if at != "" {
			title = at + ": " + title
		}
		all = append(all, column{title, workload, figure})
	}
	return all
}

// tables returns the tables of the page. Of the workloads about very many of something the goals and the charts have
// the figures.
func tables() []table {
	var fair []column
	for _, n := range work.FairOf {
		fair = append(fair, of(fmt.Sprint(n), work.Fair(n), crew.PerSecond, crew.ServerPerOp)...)
	}
	return []table{
		{"Uncontended pairs, by goroutines", slices.Concat(
			of("1", work.Pairs(1), crew.PerSecond, crew.P50),
			of("16", work.Pairs(16), crew.PerSecond, crew.ServerPerOp),
			of("256", work.Pairs(256), crew.PerSecond, crew.ClientPerOp, crew.ServerPerOp, crew.CommandsPerOp),
			of("2048", work.Pairs(2048), crew.PerSecond))},
		{"One lock, processes x goroutines", slices.Concat(
			of("1x16", work.Contended(1, 16), crew.PerSecond),
			of("1x128", work.Contended(1, 128), crew.PerSecond),
			of("1x1000", work.Contended(1, 1000), crew.PerSecond),
			of("8x125", work.Contended(8, 125), crew.PerSecond, crew.CommandsPerOp))},
		{"Hand-off to a waiter in another process", of("", work.HandOff, crew.P50, crew.P99, crew.ServerPerOp)},
		{"Fair lock, by waiters", fair},
		{"Semaphore, read/write lock, latch", slices.Concat(
			of("semaphore", work.Semaphore, crew.PerSecond),
			of("read/write", work.ReadWrite, crew.PerSecond),
			of("latch", work.Latch, crew.P50, crew.P99))},
		{"Election: until another process leads", slices.Concat(
			of("resigned", work.ElectionResigned, crew.P50, crew.P99),
			of("killed", work.ElectionKilled, crew.P50, crew.P99))},
		{"One key of a Once, 1,000 callers, work of 20 ms", of("", work.Once, crew.P50, crew.P99, work.RunsPerKey, crew.CommandsPerOp)},
		{"100,000 renewed locks, and another client's PING", of("", work.Renewal, crew.PerSecond, crew.P99, crew.ClientPerOp,
			work.GoroutinesPerLock, work.HeapPerLock)},
		{"256 goroutines of pairs, and another client's PING", of("", work.Neighbour, crew.PerSecond, crew.P99)},
		{"1 ms of work under a key, 256 goroutines", of("", work.Stripes, crew.PerSecond, crew.CommandsPerOp)},
		{"1,000 waiters on a lock that is held", of("", work.Idle, crew.CommandsPerSecond, crew.ClientPerSecond)},
		{"OpenTelemetry: pairs of 1 goroutine", of("", work.Telemetry, crew.P50, crew.ClientPerOp, crew.AllocsPerOp)},
	}
}

// Tables returns the tables of what was measured.
func (r *Results) Tables() string {
	var b strings.Builder
	for _, t := range tables() {
		t.columns = slices.DeleteFunc(t.columns, func(c column) bool { return r.comparison(c.workload) == nil })
		if len(t.columns) > 0 {
			fmt.Fprintf(&b, "### %s\n\n%s\n", t.title, r.fill(t))
		}
	}
	return b.String()
}

// fill returns a table with its medians, and what failed below it.
func (r *Results) fill(t table) string {
	var head, rows, failures strings.Builder
	var contenders, workloads []string
	for _, c := range t.columns {
		fmt.Fprintf(&head, " %s |", c.title)
		if slices.Contains(workloads, c.workload) {
			continue
		}
		workloads = append(workloads, c.workload)
		for _, contender := range r.comparison(c.workload).Contenders {
			if !slices.Contains(contenders, contender.Name) {
				contenders = append(contenders, contender.Name)
			}
			if why, times := contender.Failed(); why != "" {
				fmt.Fprintf(&failures, "\n- %s, %s, in %d of %d rounds: %s\n", contender.Name, c.workload, times, len(contender.Rounds),
					strings.Join(strings.Fields(why), " "))
			}
		}
	}
	for _, name := range contenders {
		var cells []string
		for _, c := range t.columns {
			text := ""
			if s, ok := r.Of(c.workload, name, c.figure); ok {
				text = number(s.Median)
			}
			cells = append(cells, text)
		}
		if strings.Join(cells, "") != "" {
			fmt.Fprintf(&rows, "| %s | %s |\n", name, strings.Join(cells, " | "))
		}
	}
	return "| |" + head.String() + "\n|---|" + strings.Repeat("---:|", len(t.columns)) + "\n" + rows.String() + failures.String()
}

// comparison returns what was measured of a workload, nil if nothing was.
func (r *Results) comparison(workload string) *Comparison {
	for i := range r.Comparisons {
		if r.Comparisons[i].Workload == workload {
			return &r.Comparisons[i]
		}
	}
	return nil
}

func (m *Moment) commit() string {
	switch {
	case m.Commit == "":
		return "commit not known"
	case m.Dirty:
		return m.Commit + " with changes"
	}
	return m.Commit
}

// Runs says of which commit the main figures are, on what, and where a measurement took the place of others of the same
// commit. The file has the same of the other servers.
func (r *Results) Runs() string {
	type run struct{ commit, machine, server string }
	var all []run
	workloads := make(map[run][]string)
	for _, c := range r.Comparisons {
		at := run{c.Date + ", commit not noted", plainCPU.Replace(c.Machine.CPU), c.Machine.Server()}
		name := c.Workload
		if m := c.Moment; m != nil {
			at.commit = m.commit()
			if m.Before > 0 {
				name += fmt.Sprintf(" (in the place of %d)", m.Before)
			}
		}
		if c.Quick {
			name += " (quick)"
		}
		if workloads[at] == nil {
			all = append(all, at)
		}
		workloads[at] = append(workloads[at], name)
	}
	var b strings.Builder
	for _, at := range all {
		fmt.Fprintf(&b, "- %s, %s, %s: %s\n", at.commit, at.machine, at.server, strings.Join(workloads[at], ", "))
	}
	return b.String()
}

// plainCPU leaves out of a processor's name what says nothing.
var plainCPU = strings.NewReplacer("(R)", "", "(TM)", "", " Processor", "")

// Contenders returns the table of the contenders, with versions and settings.
func (r *Results) Contenders() string {
	var b strings.Builder
	b.WriteString("| | version | settings |\n|---|---|---|\n")
	seen := make(map[string]bool)
	for _, comparison := range r.Comparisons {
		for _, c := range comparison.Contenders {
			if seen[c.Name] || c.Version == "" {
				continue
			}
			seen[c.Name] = true
			settings := c.Settings
			if settings == "" {
				settings = "defaults"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Name, c.Version, settings)
		}
	}
	return b.String()
}

// number formats a figure with about three digits.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100_000:
		return fmt.Sprintf("%.0fk", v/1000)
	case a >= 10_000:
		return fmt.Sprintf("%.1fk", v/1000)
	case a >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.01:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.2g", v)
}
