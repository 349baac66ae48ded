// This file runs all workloads, round after round.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/crew"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/bench/internal/report"
	"github.com/holdfast-go/holdfast/bench/internal/work"
)

// options are the options of the command line.
type options struct {
	only                      *regexp.Regexp
	rounds                    int
	quick, render, list, java bool
	out, profiles             string
}

func run(ctx context.Context, o options) error {
	workloads := work.All()
	if o.list {
		for _, w := range workloads {
			fmt.Printf("%-16s %s: %s\n", w.Name, w.Title, strings.Join(w.Contenders, ", "))
		}
		return nil
	}
	file := filepath.Join(o.out, "performance", "results.json")
	results, err := report.Load(file)
	if err != nil {
		return err
	}
	if !o.render {
		c := comparer{options: o, file: file, results: results}
		if err := c.all(ctx, workloads); err != nil {
			return err
		}
	}
	return results.Render(o.out)
}

// comparer runs workloads and keeps their figures.
type comparer struct {
	options
	file    string
	results *report.Results
	server  *measure.Server
	machine report.Machine
}

func (c *comparer) all(ctx context.Context, workloads []work.Workload) error {
	if err := errors.Join(makeFolder(filepath.Dir(c.file)), makeFolder(c.profiles)); err != nil {
		return err
	}
	var err error
	if c.server, err = measure.StartServer(ctx); err != nil {
		return err
	}
	defer c.server.Stop()
	version, err := c.server.Version(ctx)
	if err != nil {
		return err
	}
	c.machine = report.ThisMachine(version)
	var names []string
	for _, w := range workloads {
		names = append(names, w.Name)
	}
	for _, w := range workloads {
		if !c.only.MatchString(w.Name) {
			continue
		}
		comparison, err := c.compare(ctx, w)
		if err != nil {
			return err
		}
		c.results.Merge(comparison, names)
		// Save the figures now, so that they are kept whatever becomes of the rest.
		if err := c.results.Save(c.file); err != nil {
			return err
		}
	}
	return nil
}

func makeFolder(dir string) error {
	if dir == "" {
		return nil
	}
	return os.MkdirAll(dir, 0o755)
}

// compare makes the contenders do a workload in turn, and in the next round in the opposite order.
// So slow changes of the machine affect all contenders alike.
func (c *comparer) compare(ctx context.Context, w work.Workload) (report.Comparison, error) {
	warm, window := c.times(w)
	contenders := slices.Clone(w.Contenders)
	if w.Redisson != nil && c.java {
		contenders = append(contenders, crew.Redisson)
	}
	comparison := report.Comparison{Workload: w.Name, Date: time.Now().Format(time.DateOnly),
		Machine: c.machine, Quick: c.quick, Seconds: window.Seconds()}
	for _, name := range contenders {
		comparison.Contenders = append(comparison.Contenders, describe(name))
	}
	for round := range c.roundsOf(w) {
		for _, name := range contenders {
			figures, err := c.measure(ctx, crew.Run{Workload: w, Contender: name, Quick: c.quick,
				Warm: warm, Window: window, Profiles: c.profiles})
			switch {
			case ctx.Err() != nil:
				return comparison, ctx.Err()
			case errors.Is(err, crew.ErrNoJava):
				c.java = false
				comparison.Drop(name)
				fmt.Println("without Redisson:", err)
				continue
			}
			comparison.Add(name, figures, err)
			progress(w, round, name, figures, err)
		}
		slices.Reverse(contenders)
	}
	return comparison, nil
}

func (c *comparer) measure(ctx context.Context, r crew.Run) (crew.Figures, error) {
	if r.Contender != crew.Redisson {
		return crew.Measure(ctx, c.server, r)
	}
	// The Java virtual machine takes a while until it is fast, whatever the window. The harness
	// does not count the first quarter.
	return crew.MeasureRedisson(ctx, c.server, r.Workload, (max(r.Window, 3*time.Second)+r.Warm)*4/3)
}

// times returns how long a workload warms up, and how long it is measured.
func (c *comparer) times(w work.Workload) (warm, window time.Duration) {
	warm, window = 500*time.Millisecond, 2*time.Second
	if c.quick {
		warm, window = 200*time.Millisecond, 600*time.Millisecond
	}
	if w.Window.Warm > 0 {
		warm = w.Window.Warm
	}
	if own := w.Window.Full; own > 0 && !c.quick {
		window = own
	}
	if own := w.Window.Quick; own > 0 && c.quick {
		window = own
	}
	return warm, window
}

func (c *comparer) roundsOf(w work.Workload) int {
	switch {
	case c.rounds > 0:
		return c.rounds
	case c.quick, w.Window.Once:
		return 1
	}
	return 3
}

// describe returns the contender of that name, with its version and settings.
func describe(name string) report.Contender {
	if name == crew.Redisson {
		return report.Contender{Name: name, Version: crew.RedissonVersion}
	}
	p, err := peer.Find(name)
	if err != nil {
		return report.Contender{Name: name} // a variant of Holdfast
	}
	return report.Contender{Name: name, Settings: p.Settings, Version: p.Version()}
}

// progress prints a line for each run.
func progress(w work.Workload, round int, name string, f crew.Figures, err error) {
	fmt.Printf("%s  %-16s round %d  %-24s ", time.Now().Format(time.TimeOnly), w.Name, round+1, name)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, figure := range []string{crew.PerSecond, crew.P50, crew.Jain, crew.CommandsPerOp, crew.ClientPerOp,
		crew.ServerPerOp, crew.AllocsPerOp, crew.CommandsPerSecond} {
		if v, ok := f[figure]; ok {
			fmt.Printf(" %s %.4g", figure, v)
		}
	}
	fmt.Println()
}
