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
	only                              *regexp.Regexp
	rounds                            int
	quick, render, list, java, resume bool
	out, profiles, also               string
}

func run(ctx context.Context, o options) error {
	var selected []work.Workload
	var names []string
	for _, w := range work.All() {
		names = append(names, w.Name)
		if o.only.MatchString(w.Name) {
			selected = append(selected, w)
		}
	}
	if o.list {
		o.print(selected)
		return nil
	}
	file := filepath.Join(o.out, "performance", "results.json")
	results, err := report.Load(file)
	if err != nil {
		return err
	}
	if !o.render {
		c := comparer{options: o, file: file, results: results, order: names}
		if err := c.all(ctx, selected); err != nil {
			return err
		}
	}
	return results.Render(o.out)
}

// print lists workloads, with their contenders and how long they take.
func (o options) print(workloads []work.Workload) {
	for _, w := range workloads {
		fmt.Printf("%-16s %5.0f s  %s: %s\n", w.Name, o.planOf(w).length(w).Seconds(), w.Title, strings.Join(o.contenders(w), ", "))
	}
	fmt.Println("all of these take about", o.length(workloads))
}

func (o options) length(workloads []work.Workload) (all time.Duration) {
	for _, w := range workloads {
		all += o.planOf(w).length(w)
	}
	return all.Round(time.Minute)
}

// contenders returns who takes part in a workload. Redisson is measured on the main server only.
func (o options) contenders(w work.Workload) []string {
	contenders := slices.Clone(w.Contenders)
	if w.Redisson != nil && o.java && o.also == "" {
		contenders = append(contenders, crew.Redisson)
	}
	return contenders
}

// comparer runs workloads and keeps their figures.
type comparer struct {
	options
	file    string
	results *report.Results
	order   []string // the names of all workloads
	this    identity // of this run
	server  *measure.Server
	machine report.Machine
	scale   *crew.Scale // nil until it is built
}

func (c *comparer) all(ctx context.Context, workloads []work.Workload) error {
	if err := errors.Join(makeFolder(filepath.Dir(c.file)), makeFolder(c.profiles)); err != nil {
		return err
	}
	c.this = identify(ctx)
	if err := c.start(ctx); err != nil {
		return err
	}
	c.server.Stop()
	defer func() {
		if c.scale != nil {
			c.scale.Close()
		}
	}()
	todo := workloads
	if c.resume {
		todo = c.left(workloads)
	}
	fmt.Printf("%d workloads on %s at %s, about %v\n", len(todo), c.machine.Server(), c.this, c.length(todo))
	for _, w := range todo {
		comparison, err := c.compare(ctx, w)
		if err != nil {
			return err
		}
		if c.also == "" {
			c.results.Merge(comparison, c.order)
		} else {
			c.results.MergeAlso(comparison, c.order)
		}
		// Save the figures now, so that they are kept whatever becomes of the rest.
		if err := c.results.Save(c.file); err != nil {
			return err
		}
	}
	return nil
}

// start starts a server.
func (c *comparer) start(ctx context.Context) (err error) {
	if c.also == "" {
		c.server, err = measure.StartServer(ctx)
	} else {
		c.server, err = measure.StartBinary(ctx, c.also)
	}
	if err != nil {
		return err
	}
	name, version, err := c.server.Version(ctx)
	c.machine = report.ThisMachine(name, version)
	return err
}

// left returns the workloads that a run which was cut off has not measured. It makes this run go on
// with that run: the last of the same commit on the same server.
func (c *comparer) left(workloads []work.Workload) (todo []work.Workload) {
	old := c.results.Comparisons
	if c.also != "" {
		old = c.results.Also
	}
	mine := func(o report.Comparison) bool {
		return o.Moment != nil && o.Moment.Commit == c.this.commit && o.Moment.Dirty == c.this.dirty &&
			o.Quick == c.quick && o.Machine == c.machine
	}
	last := time.Time{}
	for _, o := range old {
		if mine(o) && o.Moment.Run.After(last) {
			last = o.Moment.Run
		}
	}
	if !last.IsZero() {
		c.this.began = last
	}
	for _, w := range workloads {
		done := slices.ContainsFunc(old, func(o report.Comparison) bool {
			return o.Workload == w.Name && mine(o) && o.Moment.Run.Equal(last) && o.Moment.Rounds == c.planOf(w).rounds
		})
		if !done {
			todo = append(todo, w)
		}
	}
	return todo
}

func makeFolder(dir string) error {
	if dir == "" {
		return nil
	}
	return os.MkdirAll(dir, 0o755)
}

// patience is how many rounds in a row a contender may fail, until it is left alone.
const patience = 3

// compare makes the contenders do a workload in turn, and in the next round in the opposite order.
// So slow changes of the machine affect all contenders alike. A contender that fails or hangs does
// not end the run. Each workload has a new server.
func (c *comparer) compare(ctx context.Context, w work.Workload) (report.Comparison, error) {
	plan, contenders := c.planOf(w), c.contenders(w)
	moment := c.this.moment(plan.rounds)
	comparison := report.Comparison{Workload: w.Name, Date: moment.Began.Format(time.DateOnly), Moment: moment,
		Quick: c.quick, Seconds: plan.window.Seconds()}
	for _, name := range contenders {
		comparison.Contenders = append(comparison.Contenders, describe(name))
	}
	if err := c.start(ctx); err != nil {
		return comparison, err
	}
	defer func() { c.server.Stop() }()
	comparison.Machine = c.machine
	redisson := crew.NewWarm(c.server, w, c.quick)
	defer redisson.Close()
	failed := make(map[string]int) // rounds in a row
	for round := range plan.rounds {
		for _, name := range contenders {
			if failed[name] >= patience {
				continue
			}
			figures, err := c.measure(ctx, w, name, plan, redisson)
			switch {
			case ctx.Err() != nil:
				return comparison, ctx.Err()
			case errors.Is(err, crew.ErrNoJava):
				c.java = false
				comparison.Drop(name)
				failed[name] = patience
				fmt.Println("without Redisson:", err)
				continue
			case err != nil:
				failed[name]++
			default:
				failed[name] = 0
			}
			comparison.Add(name, figures, err)
			progress(w, round, name, figures, err)
		}
		slices.Reverse(contenders)
	}
	moment.Ended = time.Now().UTC().Truncate(time.Second)
	return comparison, nil
}

func (c *comparer) measure(ctx context.Context, w work.Workload, name string, p plan, redisson *crew.Warm) (crew.Figures, error) {
	if w.Scale != nil {
		return c.measureScale(ctx, w.Scale(name, c.quick))
	}
	if err := c.server.Empty(ctx); err != nil && ctx.Err() == nil {
		fmt.Println("the server is started again:", err)
		c.server.Kill()
		if err := c.server.Start(ctx); err != nil {
			return nil, err
		}
	}
	if name == crew.Redisson {
		return redisson.Measure(ctx, p.warm, p.window)
	}
	return crew.Measure(ctx, c.server, crew.Run{Workload: w, Contender: name, Quick: c.quick,
		Warm: p.warm, Window: p.window, Profiles: c.profiles})
}

func (c *comparer) measureScale(ctx context.Context, args []string) (f crew.Figures, err error) {
	if c.scale == nil {
		if c.scale, err = crew.BuildScale(ctx); err != nil {
			return nil, err
		}
	}
	return c.scale.Measure(ctx, c.also, args)
}

// describe returns the contender of that name, with its version and settings.
func describe(name string) report.Contender {
	if name == crew.Redisson {
		return report.Contender{Name: name, Settings: crew.RedissonSettings, Version: crew.RedissonVersion}
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
		crew.ServerPerOp, crew.AllocsPerOp, crew.CommandsPerSecond, crew.Lost, crew.Seconds} {
		if v, ok := f[figure]; ok {
			fmt.Printf(" %s %.4g", figure, v)
		}
	}
	fmt.Println()
}
