// The ugly command measures what was slow or unfair when outsiders looked, as far as virtual time cannot show it:
// processes that are starved of their processor, waiters that give up, a planned failover.
//
//	cd bench
//	go run ./cmd/ugly                      every figure once
//	go run ./cmd/ugly -beside 2efcfe6      and those of that commit, in turn
//	go run ./cmd/ugly -rounds 6 -only starved
//
// The scenes are those of internal/test/figures, with servers of their own. They are built in this tree, and in a
// worktree of the other commit. The command prints one table, which docs/reports/found.md sums up, and exits with 1 if a
// goal was not met. The goals are for a machine that does nothing else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

var (
	beside = flag.String("beside", "", "the `commit` to measure beside this one")
	rounds = flag.Int("rounds", 1, "how often each figure is measured")
	only   = flag.String("only", "", "only the scenes whose names match this `pattern`")
)

// scenes are the subtests of TestFigures.
var scenes = []string{"starved", "impatient", "failover"}

// folder is the package that has them, in either tree.
const folder = "internal/test/figures"

var errNotMet = errors.New("not every goal was met")

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "ugly:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "holdfast-ugly-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	now := &tree{name: "now", binary: filepath.Join(scratch, "now.test")}
	if err := now.build(ctx, ".."); err != nil {
		return err
	}
	trees := []*tree{now}
	if *beside != "" {
		before := &tree{name: *beside, binary: filepath.Join(scratch, "before.test")}
		remove, err := before.checkOut(ctx, filepath.Join(scratch, "before"))
		defer remove()
		if err != nil {
			return err
		}
		trees = []*tree{before, now}
	}
	for _, scene := range scenes {
		for range *rounds {
			for _, t := range trees {
				if wanted.MatchString(scene) {
					fmt.Fprintln(os.Stderr, scene, t.name)
					t.play(ctx, scene)
				}
			}
		}
	}
	return table(ctx, now, trees)
}

// tree is a version of Holdfast.
type tree struct {
	name   string
	binary string // the tests, built
	order  []string
	rows   map[string]*row
	failed error // a scene that ended for another reason than a goal that is not met
}

// row is what a figure was in each round.
type row struct {
	goal   string
	values []string
	met    int
}

// checkOut puts the scenes into a worktree of the commit and builds them there.
func (t *tree) checkOut(ctx context.Context, dir string) (remove func(), err error) {
	if err := command(ctx, "..", "git", "worktree", "add", "--quiet", "--detach", dir, t.name); err != nil {
		return func() {}, err
	}
	remove = func() {
		_ = command(context.WithoutCancel(ctx), "..", "git", "worktree", "remove", "--force", dir)
	}
	there := filepath.Join(dir, folder)
	if err := os.RemoveAll(there); err != nil {
		return remove, err
	}
	if err := os.CopyFS(there, os.DirFS(filepath.Join("..", folder))); err != nil {
		return remove, err
	}
	return remove, t.build(ctx, dir)
}

func (t *tree) build(ctx context.Context, dir string) error {
	t.rows = make(map[string]*row)
	return command(ctx, dir, "go", "test", "-c", "-o", t.binary, "./"+folder)
}

func command(ctx context.Context, dir, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Stdout, c.Stderr = dir, os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

// figure is a line that a scene logs: see verdict in internal/test/figures.
var figure = regexp.MustCompile(`figure: (.*?) \| (.*?) \| (.*) \| (met|not met)\n`)

// play plays a scene, and notes its figures. That a goal is not met is a failure of the scene, and noted too.
func (t *tree) play(ctx context.Context, scene string) {
	c := exec.CommandContext(ctx, t.binary, "-test.run=^TestFigures$/^"+scene+"$", "-test.v", "-test.timeout=20m")
	c.Dir = filepath.Dir(t.binary)
	c.Env = append(os.Environ(), "HOLDFAST_SERVERS=1", "HOLDFAST_LONG=1")
	out, err := c.CombinedOutput()
	missed := false
	for _, f := range figure.FindAllStringSubmatch(string(out), -1) {
		r := t.rows[f[1]]
		if r == nil {
			r = &row{goal: f[2]}
			t.rows[f[1]], t.order = r, append(t.order, f[1])
		}
		r.values = append(r.values, f[3])
		if f[4] == "met" {
			r.met++
		} else {
			missed = true
		}
	}
	if err != nil && !missed {
		t.failed = fmt.Errorf("%s: %s: %w", t.name, scene, err)
		fmt.Fprintf(os.Stderr, "%s\n%v\n", out, t.failed)
	}
}

// table prints the figures of all trees, in the order of now.
func table(ctx context.Context, now *tree, trees []*tree) error {
	commit, _ := exec.CommandContext(ctx, "git", "rev-parse", "--short=7", "HEAD").Output()
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("Commit %s, %s, load at the end %s\n\n| figure | goal |", strings.TrimSpace(string(commit)),
		time.Now().UTC().Format("2006-01-02 15:04"), strings.TrimSpace(string(load)))
	for _, t := range trees {
		fmt.Printf(" %s |", t.name)
	}
	fmt.Printf(" met |\n|---|---|%s---|\n", strings.Repeat("---|", len(trees)))
	err := now.failed
	for _, what := range now.order {
		fmt.Printf("| %s | %s |", what, now.rows[what].goal)
		for _, t := range trees {
			if r := t.rows[what]; r != nil {
				fmt.Printf(" %s |", strings.Join(r.values, "; "))
			} else {
				fmt.Print(" |")
			}
		}
		r := now.rows[what]
		fmt.Printf(" %d of %d |\n", r.met, len(r.values))
		if r.met < len(r.values) {
			err = errNotMet
		}
	}
	if len(now.order) == 0 {
		return errors.New("no scene has a figure")
	}
	return err
}
