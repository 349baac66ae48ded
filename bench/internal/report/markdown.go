// This file puts the tables into a page between markers.

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
	b.WriteString("| work | at least | reached | met | peers that starve or bunch callers |")
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
const differs = 0.1

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

// column is a figure in the tables.
type column struct{ figure, title string }

var columns = []column{
	{crew.PerSecond, "per s"},
	{crew.P50, "p50 µs"},
	{crew.P99, "p99 µs"},
	{crew.Jain, "Jain"},
	{crew.Starved, "starved"},
	{crew.LeastShare, "least share"},
	{crew.LargestShare, "largest"},
	{work.RunsPerKey, "runs of the work"},
	{crew.CommandsPerOp, "commands"},
	{crew.ClientPerOp, "client µs"},
	{crew.ServerPerOp, "server µs"},
	{crew.AllocsPerOp, "allocs"},
	{work.GoroutinesPerLock, "goroutines per lock"},
	{work.HeapPerLock, "heap B per lock"},
	{crew.CommandsPerSecond, "commands/s"},
	{crew.ClientPerSecond, "client µs/s"},
	{crew.ServerPerSecond, "server µs/s"},
	{crew.Lost, "lost"},
	{crew.LongestGap, "longest gap / lease"},
	{crew.LeastTTL, "least time to live / lease"},
	{crew.DialsPerClient, "dials/s per Client"},
	{crew.ConnectionsPerClient, "connections per Client"},
	{crew.MemoryPerOne, "memory B each"},
	{crew.Seconds, "until all, s"},
	{crew.KeysLeft, "keys left per name"},
	{crew.ServerBytesLeft, "server B"},
	{crew.ClientBytesLeft, "client B"},
	{crew.KeysAfter6Days, "keys after 6 days"},
	{crew.KeysAfter7Days, "keys after 7 days and 1 s"},
}

// Tables returns a table for each measured workload.
func (r *Results) Tables() string {
	var b strings.Builder
	for _, c := range r.Comparisons {
		title := c.Workload
		if w, err := work.Find(c.Workload); err == nil {
			title = strings.ToUpper(w.Title[:1]) + w.Title[1:]
		}
		fmt.Fprintf(&b, "### %s\n\n%s\n%s\n", title, c.table(), c.circumstances())
	}
	return b.String()
}

func (c Comparison) table() string {
	shown := c.columns()
	var b strings.Builder
	b.WriteString("| |")
	for _, column := range shown {
		fmt.Fprintf(&b, " %s |", column.title)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(shown)) + "\n")
	for _, contender := range c.Contenders {
		fmt.Fprintf(&b, "| %s |", contender.Name)
		for i, column := range shown {
			switch s, ok := contender.Spread(column.figure); {
			case ok && i == 0:
				fmt.Fprintf(&b, " %s (%s to %s) |", number(s.Median), number(s.Low), number(s.High))
			case ok:
				fmt.Fprintf(&b, " %s |", number(s.Median))
			case i == 0:
				why, _ := contender.Failed()
				fmt.Fprintf(&b, " %s |", strings.Join(strings.Fields(why), " "))
			default:
				b.WriteString(" |")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// columns returns the columns for which any contender has figures. If there are figures per
// operation, it leaves out the figures per second, which then say nothing more.
func (c Comparison) columns() (shown []column) {
	for _, column := range columns {
		if c.rated() && (column.figure == crew.CommandsPerSecond || column.figure == crew.ClientPerSecond || column.figure == crew.ServerPerSecond) {
			continue
		}
		if c.has(column.figure) {
			shown = append(shown, column)
		}
	}
	return shown
}

func (c Comparison) rated() bool { return c.has(crew.ClientPerOp) }

func (c Comparison) has(figure string) bool {
	for _, contender := range c.Contenders {
		if _, ok := contender.Spread(figure); ok {
			return true
		}
	}
	return false
}

// circumstances returns when, where and of what the workload was measured, and what failed.
func (c Comparison) circumstances() string {
	rounds := 0
	var failures []string
	for _, contender := range c.Contenders {
		rounds = max(rounds, len(contender.Rounds))
		if failed, times := contender.Failed(); failed != "" {
			failures = append(failures, fmt.Sprintf("%s, in %d of %d rounds: %s", contender.Name, times, len(contender.Rounds), failed))
		}
	}
	text := fmt.Sprintf("%s; %d rounds of %g s; %s, %d cores; %s, %s.\n", c.when(), rounds, math.Round(c.Seconds*10)/10,
		c.Machine.CPU, c.Machine.Cores, c.Machine.Go, c.Machine.Server())
	for _, failure := range failures {
		text += "\n- " + strings.Join(strings.Fields(failure), " ") + "\n"
	}
	return text
}

// when returns the moment of the measurement in words.
func (c Comparison) when() string {
	m := c.Moment
	if m == nil {
		return c.Date + ", commit and load not noted"
	}
	text := m.Began.UTC().Format("2006-01-02 15:04 UTC") + ", " + m.commit()
	if m.Load >= 0 {
		text += fmt.Sprintf(", load %.2f when it began", m.Load)
	}
	if m.Before > 0 {
		text += fmt.Sprintf(", in the place of %d earlier of the same commit", m.Before)
	}
	if c.Quick {
		text += ", quick: less or smaller than it says"
	}
	return text
}

func (m *Moment) commit() string {
	switch {
	case m.Commit == "":
		return "commit not known"
	case m.Dirty:
		return "commit " + m.Commit + " with changes"
	}
	return "commit " + m.Commit
}

// Runs says which runs the figures are from.
func (r *Results) Runs() string {
	type run struct{ began, commit, server string }
	var all []run
	workloads := make(map[run][]string)
	for _, c := range slices.Concat(r.Comparisons, r.Also) {
		at := run{c.Date, "commit not noted", c.Machine.Server()}
		if c.Moment != nil {
			at.began, at.commit = c.Moment.Run.UTC().Format("2006-01-02 15:04 UTC"), c.Moment.commit()
		}
		if workloads[at] == nil {
			all = append(all, at)
		}
		workloads[at] = append(workloads[at], c.Workload)
	}
	var b strings.Builder
	for _, at := range all {
		fmt.Fprintf(&b, "- %s, %s, %s: %s\n", at.began, at.commit, at.server, strings.Join(workloads[at], ", "))
	}
	return b.String()
}

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
