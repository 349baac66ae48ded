// This file draws the charts.

package report

import (
	"errors"
	"fmt"
	"image/color"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/holdfast-go/holdfast/bench/internal/crew"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/bench/internal/work"
)

// family is one library in the charts. The chart shows the best of its settings.
type family struct {
	name    string
	members []string
	color   color.Color
}

var families = []family{
	{"Holdfast", []string{peer.Holdfast}, color.RGBA{R: 0x1b, G: 0x6c, B: 0xa8, A: 0xff}},
	{"Holdfast, cohort off", []string{peer.HoldfastWithoutCohort}, color.RGBA{R: 0x8a, G: 0xbd, B: 0xe0, A: 0xff}},
	{"redsync", redsyncs, color.RGBA{R: 0xd8, G: 0x8c, B: 0x2c, A: 0xff}},
	{"redislock", redislocks, color.RGBA{R: 0x7a, G: 0x9a, B: 0x3a, A: 0xff}},
	{"a peer behind a local mutex", locals, color.RGBA{R: 0x5f, G: 0x4b, B: 0x8b, A: 0xff}},
	{"rueidislock", rueidislocks, color.RGBA{R: 0xa8, G: 0x4a, B: 0x4a, A: 0xff}},
	{"Redisson", []string{crew.Redisson}, color.RGBA{R: 0x8a, G: 0x8a, B: 0x8a, A: 0xff}},
}

const (
	width, height = 18 * vg.Centimeter, 9 * vg.Centimeter
	barWidth      = 9
)

// Charts draws the charts into the folder.
func (r *Results) Charts(dir string) error {
	for name, draw := range map[string]func() (*plot.Plot, error){
		"pairs.svg":    r.pairsChart,
		"one-lock.svg": r.oneLockChart,
		"hand-off.svg": r.handOffChart,
		"fair.svg":     r.fairChart,
		"summary.svg":  r.summaryChart,
		"waiters.svg":  r.waitersChart,
		"clients.svg":  r.clientsChart,
	} {
		p, err := draw()
		if err == nil {
			err = p.Save(width, height, filepath.Join(dir, name))
		}
		if err != nil {
			return fmt.Errorf("chart %s: %w", name, err)
		}
	}
	return nil
}

func (r *Results) pairsChart() (*plot.Plot, error) {
	var groups []group
	for _, n := range work.PairsOf {
		groups = append(groups, group{fmt.Sprint(n), work.Pairs(n)})
	}
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "goroutines, each its own lock", "pairs per second"
	return p, r.bars(p, groups, crew.PerSecond, false)
}

func (r *Results) oneLockChart() (*plot.Plot, error) {
	var groups []group
	for _, crowd := range work.Crowds {
		groups = append(groups, group{fmt.Sprintf("%d x %d", crowd[0], crowd[1]), work.Contended(crowd[0], crowd[1])})
	}
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "processes x goroutines, one lock", "grants per second"
	return p, r.bars(p, groups, crew.PerSecond, true)
}

func (r *Results) handOffChart() (*plot.Plot, error) {
	p := plot.New()
	p.Y.Label.Text = "hand-off p50, µs (less is better)"
	return p, r.bars(p, []group{{"to a waiter in another process", work.HandOff}}, crew.P50, true)
}

// group is one workload in a chart: bars side by side.
type group struct{ label, workload string }

// bars draws a bar in each group for each family that has the figure.
func (r *Results) bars(p *plot.Plot, groups []group, figure string, logarithmic bool) error {
	values, least, most := r.bests(groups, figure)
	floor := 0.0 // where the bars begin
	if logarithmic {
		floor = least / 2 // the scale has no 0
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	for i, f := range families {
		if values[i] == nil {
			continue
		}
		ground, heights := make(plotter.Values, len(groups)), make(plotter.Values, len(groups))
		for j, v := range values[i] {
			ground[j], heights[j] = floor, max(v-floor, 0)
		}
		below, err1 := plotter.NewBarChart(ground, barWidth)
		chart, err2 := plotter.NewBarChart(heights, barWidth)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		chart.StackOn(below) // below is not drawn
		chart.Color, chart.LineStyle.Width = f.color, 0
		chart.Offset = barWidth * vg.Length(float64(i)-float64(len(families)-1)/2)
		p.Add(chart)
		p.Legend.Add(f.name, chart)
	}
	var labels []string
	for _, g := range groups {
		labels = append(labels, g.label)
	}
	p.NominalX(labels...)
	p.X.Min, p.X.Max = -0.5, float64(len(groups))-0.5
	p.Legend.Top = true
	p.Y.Min, p.Y.Max = floor, most*1.3 // room for the legend
	if logarithmic {
		p.Y.Max = most * 30
	}
	return nil
}

// bests returns the best median of each family in each group, and the least and the largest of
// these medians. values is nil for a family that has no median. least and most are 1 if there are
// no medians.
func (r *Results) bests(groups []group, figure string) (values [][]float64, least, most float64) {
	values = make([][]float64, len(families))
	for i, f := range families {
		for j, g := range groups {
			best := r.Best(g.workload, figure, figure == crew.P50, f.members...)
			s, ok := r.Of(g.workload, best, figure)
			if !ok || s.Median <= 0 {
				continue
			}
			if values[i] == nil {
				values[i] = make([]float64, len(groups))
			}
			values[i][j] = s.Median
			if least == 0 || s.Median < least {
				least = s.Median
			}
			most = max(most, s.Median)
		}
	}
	if most == 0 {
		least, most = 1, 1
	}
	return values, least, most
}

// fairChart draws the server's time per grant against the crowd.
func (r *Results) fairChart() (*plot.Plot, error) {
	var points plotter.XYs
	for _, waiters := range work.FairOf {
		if s, ok := r.Of(work.Fair(waiters), peer.Holdfast, crew.ServerPerOp); ok {
			points = append(points, plotter.XY{X: float64(waiters), Y: s.Median})
		}
	}
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "waiters at the fair lock, in 8 processes", "server µs per grant"
	if len(points) == 0 {
		return p, nil
	}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return nil, err
	}
	line.Color, dots.Color = families[0].color, families[0].color
	p.Add(plotter.NewGrid(), line, dots)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min = 0
	return p, nil
}

// line is a curve in a chart over a size.
type line struct {
	name   string
	points plotter.XYs
	color  color.Color
}

// waitersChart draws what a crowd at one name costs while it waits, and how long until each had its
// turn.
func (r *Results) waitersChart() (*plot.Plot, error) {
	cost := line{name: "CPU ms/s of all while they wait", color: families[0].color}
	took := line{name: "ms until each had its turn", color: families[2].color}
	for _, n := range work.WaitersOf {
		client, ok := r.Of(work.ScaleWaiters, work.Waiters(n), crew.ClientPerSecond)
		server, _ := r.Of(work.ScaleWaiters, work.Waiters(n), crew.ServerPerSecond)
		seconds, known := r.Of(work.ScaleWaiters, work.Waiters(n), crew.Seconds)
		if ok && known {
			cost.points = append(cost.points, plotter.XY{X: float64(n), Y: (client.Median + server.Median) / 1000})
			took.points = append(took.points, plotter.XY{X: float64(n), Y: seconds.Median * 1000})
		}
	}
	p := plot.New()
	p.X.Label.Text = "waiters at one name, in 8 processes"
	return p, curves(p, cost, took)
}

// clientsChart draws the CPU that Clients use, by what they do.
func (r *Results) clientsChart() (*plot.Plot, error) {
	var all []line
	for i, do := range work.ClientsDo {
		l := line{name: do, color: families[i*2].color}
		for _, n := range work.ClientsOf {
			client, ok := r.Of(work.ScaleClients, work.Clients(n, do), crew.ClientPerSecond)
			server, _ := r.Of(work.ScaleClients, work.Clients(n, do), crew.ServerPerSecond)
			if ok {
				l.points = append(l.points, plotter.XY{X: float64(n), Y: (client.Median + server.Median) / 1000})
			}
		}
		all = append(all, l)
	}
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "Clients, in 8 processes", "CPU ms/s of all and the server"
	return p, curves(p, all...)
}

// curves draws lines on two logarithmic scales.
func curves(p *plot.Plot, lines ...line) error {
	p.Add(plotter.NewGrid())
	drawn := false
	for _, l := range lines {
		if len(l.points) == 0 {
			continue
		}
		curve, dots, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return err
		}
		curve.Color, dots.Color = l.color, l.color
		p.Add(curve, dots)
		p.Legend.Add(l.name, curve, dots)
		drawn = true
	}
	p.Legend.Top, p.Legend.Left = true, true
	if drawn {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.Y.Max *= 5 // room for the legend
	}
	return nil
}
