// This file puts the tables into a page between markers.

package report

import (
	"fmt"
	"math"
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

// Verdicts returns the table of the targets.
func (r *Results) Verdicts() string {
	var b strings.Builder
	b.WriteString("| work | at least | reached | met |\n|---|---|---|---|\n")
	for _, t := range Targets() {
		var reached []string
		met := "yes"
		for _, c := range t.Checks(r) {
			switch {
			case !c.Known:
				reached = append(reached, "not measured")
				met = ""
				continue
			case !c.Met && met == "yes":
				met = "**no**"
			}
			reached = append(reached, c.Text)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", t.Work, t.AtMost, strings.Join(reached, "; "), met)
	}
	return b.String()
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
	{crew.CommandsPerOp, "commands"},
	{crew.ClientPerOp, "client µs"},
	{crew.ServerPerOp, "server µs"},
	{crew.AllocsPerOp, "allocs"},
	{work.GoroutinesPerLock, "goroutines per lock"},
	{work.HeapPerLock, "heap B per lock"},
	{crew.CommandsPerSecond, "commands/s"},
	{crew.ClientPerSecond, "client µs/s"},
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
				fmt.Fprintf(&b, " %s (%s to %s) |", number(s.Median), number(s.Min), number(s.Max))
			case ok:
				fmt.Fprintf(&b, " %s |", number(s.Median))
			case i == 0:
				fmt.Fprintf(&b, " %s |", contender.Failed())
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
		if c.rated() && (column.figure == crew.CommandsPerSecond || column.figure == crew.ClientPerSecond) {
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

// circumstances returns when and where the workload was measured, and what failed.
func (c Comparison) circumstances() string {
	rounds := 0
	var failures []string
	for _, contender := range c.Contenders {
		rounds = max(rounds, len(contender.Rounds))
		if failed := contender.Failed(); failed != "" {
			failures = append(failures, contender.Name+": "+failed)
		}
	}
	text := fmt.Sprintf("%s; %d rounds of %g s; %s, %d cores; %s, Redis %s.\n", c.Date, rounds, math.Round(c.Seconds*10)/10,
		c.Machine.CPU, c.Machine.Cores, c.Machine.Go, c.Machine.Redis)
	for _, failure := range failures {
		text += "\n- " + strings.ReplaceAll(failure, "\n", " ") + "\n"
	}
	return text
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
