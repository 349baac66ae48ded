// The command line.

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// config configures a run.
type config struct {
	Topology string
	Ground   string
	Kinds    []string
	Faults   []string // classes of faults; -faults all stands for all that the topology has
	For      time.Duration
	Limit    time.Duration
	Seed     uint64
	Grants   int // go on until there are this many grants
	Count    int // and this many faults

	Replicas  int
	Lease     time.Duration
	Processes int
	Width     int     // multiplies the lanes and the names of each kind
	Pauses    float64 // multiplies the pauses between faults
	Bounds    bool    // what takes too long is a violation too

	AddUp  string // a pattern of names of reports to add up, in place of a run
	Report string // a directory, or empty
	Quiet  bool
}

func main() { redistest.Main(program(os.Args[1:]), contender()) }

// program is the command line without the program's name. Package redistest runs it as it runs
// a package's tests; in a process that it started itself, it runs a contender instead.
type program []string

// Run returns the status to exit with.
func (p program) Run() int {
	c, err := parse(p)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "holdfast-torture:", err)
		return 2
	}
	if c.AddUp != "" {
		return c.addUp()
	}
	logging.Disable() // go-redis would log each failover
	var r *report
	problems := onSite(func(t testing.TB) { r = run(t, c) })
	if r == nil {
		fmt.Fprintf(os.Stderr, "holdfast-torture: broke off:\n%s\n", strings.Join(problems, "\n"))
		return 1
	}
	r.Violations = append(r.Violations, problems...)
	if err := r.publish(os.Stdout, c.Report); err != nil {
		fmt.Fprintln(os.Stderr, "holdfast-torture:", err)
		return 1
	}
	if len(r.Violations) > 0 {
		return 1
	}
	return 0
}

// addUp publishes the sum of several reports, and returns the status to exit with.
func (c config) addUp() int {
	files, err := filepath.Glob(c.AddUp)
	var sum *report
	if err == nil {
		sum, err = addUp(files)
	}
	if err == nil {
		err = sum.publish(os.Stdout, c.Report)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "holdfast-torture:", err)
		return 2
	case len(sum.Violations) > 0:
		return 1
	}
	return 0
}

// parse reads the command line.
func parse(args []string) (config, error) {
	c := config{}
	flags := flag.NewFlagSet("holdfast-torture", flag.ContinueOnError)
	flags.StringVar(&c.Topology, "topology", "single", "single, sentinel, cluster or quorum")
	ground := flags.String("ground", "plain", "what lies between, and by what client; a wrong one lists them")
	kinds := flags.String("kinds", "all", "kinds of synchronizers, by commas; quorum has kinds of its own")
	faults := flags.String("faults", "all", "classes of faults, by commas, or none; a wrong one lists them")
	flags.DurationVar(&c.For, "for", time.Minute, "how long, at least")
	flags.DurationVar(&c.Limit, "limit", 0, "give up after this; default 10 times -for")
	flags.Uint64Var(&c.Seed, "seed", 0, "of the faults; 0 draws one")
	flags.IntVar(&c.Grants, "grants", 0, "go on until there are so many grants")
	flags.IntVar(&c.Count, "faults-count", 0, "and so many faults")
	flags.IntVar(&c.Replicas, "replicas", -1, "of the tier on sentinel and cluster; default all of them: with fewer a failover is not promised to keep grants")
	flags.DurationVar(&c.Lease, "lease", 2*time.Second, "of each hold")
	flags.IntVar(&c.Processes, "processes", 4, "that contend, at least 2")
	flags.IntVar(&c.Width, "width", 1, "multiplies the lanes and the names of each kind, for more grants a second")
	flags.Float64Var(&c.Pauses, "pauses", 1, "multiplies the pauses between faults, for more grants a fault")
	flags.BoolVar(&c.Bounds, "bounds", true, "what takes too long is a violation too; false for a machine that is slow or busy")
	flags.StringVar(&c.AddUp, "add-up", "", "run nothing; add up the JSON reports whose names match this pattern")
	flags.StringVar(&c.Report, "report", "", "directory to write the report to, as JSON and Markdown")
	flags.BoolVar(&c.Quiet, "quiet", false, "no progress line")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	c.Limit = cmp.Or(c.Limit, 10*c.For)
	if c.Seed == 0 {
		c.Seed = rand.Uint64()>>33 + 1 // short enough to type
	}
	if n := replicasOf[c.Topology]; c.Replicas < 0 || c.Replicas > n {
		c.Replicas = n
	}
	if c.Processes < 2 {
		return c, errors.New("-processes: at least 2")
	}
	if c.Width < 1 || c.Pauses <= 0 {
		return c, errors.New("-width and -pauses: at least 1, and more than 0")
	}
	all := groundsOf(c.Topology)
	if !slices.Contains(all, *ground) {
		return c, fmt.Errorf("-ground: %q is none of %s", *ground, strings.Join(all, ", "))
	}
	c.Ground = *ground
	var err error
	if c.Kinds, err = chosen("kinds", *kinds, kindsOf(c.Topology)); err != nil {
		return c, err
	}
	c.Faults, err = chosen("faults", *faults, classesOf(c.Topology))
	return c, err
}

// names is how many names the lanes of each kind contend for.
func (c config) names() int { return objectsOfAKind * c.Width }

// chosen returns the elements of all that the flag names.
func chosen(flag, names string, all []string) ([]string, error) {
	switch {
	case len(all) == 0:
		return nil, errors.New("-topology: single, sentinel, cluster or quorum")
	case names == "all":
		return all, nil
	case names == "none" && flag == "faults":
		return nil, nil
	}
	list := strings.Split(names, ",")
	for _, name := range list {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("-%s: %q is none of %s", flag, name, strings.Join(all, ", "))
		}
	}
	return list, nil
}
