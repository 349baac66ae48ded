// The summary is what a reader with one minute needs: a chart, and a table of the ratios in it.

package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/holdfast-go/holdfast/bench/internal/crew"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/bench/internal/work"
)

// headline is a row of the summary: Holdfast beside the best of the others.
type headline struct {
	label    string
	workload string
	figure   string // crew.PerSecond, or crew.P50, where less is better
	one      string
	others   []string
}

var headlines = []headline{
	{"pair, 1 goroutine: p50", work.Pairs(1), crew.P50, peer.Holdfast, peers},
	{"pairs/s, 16 goroutines", work.Pairs(16), crew.PerSecond, peer.Holdfast, peers},
	{"pairs/s, 256 goroutines", work.Pairs(256), crew.PerSecond, peer.Holdfast, peers},
	{"pairs/s, 2 048 goroutines", work.Pairs(2048), crew.PerSecond, peer.Holdfast, peers},
	{"one lock, 8 processes, cohort off", work.Contended(8, 125), crew.PerSecond, peer.HoldfastWithoutCohort, peers},
	{"hand-off to another process: p50", work.HandOff, crew.P50, peer.Holdfast, slices.Concat(peers, []string{crew.Redisson})},
	{"one lock, 8 processes, cohort on", work.Contended(8, 125), crew.PerSecond, peer.Holdfast, slices.Concat(peers, locals)},
	{"one lock, 1 process, cohort on", work.Contended(1, 128), crew.PerSecond, peer.Holdfast, slices.Concat(peers, locals)},
	{"read/write lock, beside Redisson", work.ReadWrite, crew.PerSecond, peer.Holdfast, []string{crew.Redisson}},
	{"semaphore, beside Redisson", work.Semaphore, crew.PerSecond, peer.Holdfast, []string{crew.Redisson}},
	{"a leader resigns, beside etcd: p50", work.ElectionResigned, crew.P50, peer.Holdfast, []string{peer.Etcd}},
	{"1 000 callers of one Once key: p50", work.Once, crew.P50, peer.Holdfast, onces},
	{"fair lock, beside Redisson", work.Fair(1000), crew.PerSecond, peer.Holdfast, []string{crew.Redisson}},
}

// advantage is how many times faster Holdfast is than another.
type advantage struct {
	other string
	Spread
}

// against returns the advantage over the best of the others, and over the best of those that starve
// nobody. ok is false if Holdfast or all others were not measured.
func (h headline) against(r *Results) (all, fair advantage, ok bool) {
	less := h.figure == crew.P50
	over := func(other string) (advantage, bool) {
		one, two := h.one, other
		if less {
			one, two = other, h.one // less is better, so that the other's share of ours is our advantage
		}
		s, ok := r.Ratio(h.workload, h.figure, one, two)
		return advantage{other, s}, ok
	}
	all, ok = over(r.Best(h.workload, h.figure, less, h.others...))
	fair, _ = over(r.Best(h.workload, h.figure, less, slices.DeleteFunc(slices.Clone(h.others),
		func(name string) bool { return r.starves(h.workload, name) })...))
	return all, fair, ok
}

// Summary returns the table of the headlines.
func (r *Results) Summary() string {
	var b strings.Builder
	b.WriteString("| Holdfast is as many times faster as | the best of the others | the best that starves nobody |\n|---|---|---|\n")
	words := func(a advantage) string {
		if a.other == "" {
			return "all others starve some"
		}
		return ratio(a.Spread, a.other)
	}
	for _, h := range headlines {
		all, fair, ok := h.against(r)
		switch {
		case !ok:
			fmt.Fprintf(&b, "| %s | not measured | |\n", h.label)
		case all.other == fair.other:
			fmt.Fprintf(&b, "| %s | %s | the same |\n", h.label, words(all))
		default:
			fmt.Fprintf(&b, "| %s | %s | %s |\n", h.label, words(all), words(fair))
		}
	}
	return b.String()
}

// fairColor is the color of the advantage over the best that starves nobody.
var fairColor = color.RGBA{R: 0x8a, G: 0xbd, B: 0xe0, A: 0xff}

// summaryChart draws a bar for each headline, from 1 to the advantage, with its interval.
func (r *Results) summaryChart() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "How many times faster Holdfast is than the best of the others"
	p.X.Label.Text = "times (1 is as fast; the lines are 95 % intervals)"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	names, least, most := make([]string, len(headlines)), 0.5, 2.0
	for i, h := range headlines {
		row := len(headlines) - 1 - i // the first is at the top
		names[row] = h.label
		all, fair, ok := h.against(r)
		if !ok {
			continue
		}
		if all.other != fair.other && fair.other != "" {
			if err := bar(p, fair.Median, float64(row)-0.25, 0.5, fairColor); err != nil {
				return nil, err
			}
		}
		if err := drawAdvantage(p, all, float64(row), fair.Median); err != nil {
			return nil, err
		}
		least = min(least, all.Low, all.Median)
		most = max(most, all.High, all.Median, fair.Median)
	}
	p.NominalY(names...)
	p.Y.Tick.Label.Font.Size = vg.Points(9)
	p.Y.Min, p.Y.Max = -0.6, float64(len(headlines))-0.4
	p.X.Min, p.X.Max = least/1.2, most*12 // room for the names
	even, err := plotter.NewLine(plotter.XYs{{X: 1, Y: p.Y.Min}, {X: 1, Y: p.Y.Max}})
	if err != nil {
		return nil, err
	}
	even.Color = color.Gray{Y: 0x55}
	p.Add(even)
	legend(p)
	return p, nil
}

func legend(p *plot.Plot) {
	for _, entry := range []struct {
		text  string
		color color.Color
	}{{"than the best", families[0].color}, {"than the best that starves nobody", fairColor}} {
		if polygon, err := plotter.NewPolygon(plotter.XYs{{X: 1}, {X: 1}, {X: 1}}); err == nil {
			polygon.Color, polygon.LineStyle.Width = entry.color, 0
			p.Legend.Add(entry.text, polygon)
		}
	}
	p.Legend.Top, p.Legend.XOffs, p.Legend.YOffs = true, -vg.Centimeter/2, -vg.Centimeter
}

// drawAdvantage draws a bar, its interval, and the name of the other, which stands to the right of
// free.
func drawAdvantage(p *plot.Plot, a advantage, y, free float64) error {
	if err := bar(p, a.Median, y, 0.35, families[0].color); err != nil {
		return err
	}
	interval, err := plotter.NewLine(plotter.XYs{{X: a.Low, Y: y}, {X: a.High, Y: y}})
	if err != nil {
		return err
	}
	interval.Width = vg.Points(1.5)
	label, err := plotter.NewLabels(plotter.XYLabels{
		XYs:    plotter.XYs{{X: max(1, a.High, free) * 1.08, Y: y - 0.12}},
		Labels: []string{factor(a.Median) + " " + a.other},
	})
	if err != nil {
		return err
	}
	p.Add(interval, label)
	return nil
}

// bar draws a bar from 1 to the value.
func bar(p *plot.Plot, value, y, height float64, fill color.Color) error {
	value = math.Max(value, 1e-3)
	low, high := y-height/2, y+height/2
	polygon, err := plotter.NewPolygon(plotter.XYs{{X: 1, Y: low}, {X: value, Y: low}, {X: value, Y: high}, {X: 1, Y: high}})
	if err != nil {
		return err
	}
	polygon.Color, polygon.LineStyle.Width = fill, 0
	p.Add(polygon)
	return nil
}
