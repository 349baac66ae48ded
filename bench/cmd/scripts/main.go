// The scripts command measures what Holdfast's scripts cost a server, whatever its client does: they are sent again in
// deep pipelines, as Holdfast sends them.
//
//	cd bench
//	go run ./cmd/scripts                                      redis-server from PATH
//	go run ./cmd/scripts "$(../.ci/servers valkey9)" ...      others
//	go run ./cmd/scripts -save /tmp/before.json               saves what this version sends
//	go run ./cmd/scripts -beside /tmp/before.json             compares, for half an hour, with what another sent
//	go run ./cmd/scripts -only 'pair|look'
//
// It prints the server's own CPU time for each kind of work, the median of some rounds, in which the rows take turns,
// and how many commands the scripts run. Beside another version's the two take turns too, and the ratio is the median
// of the ratios of the rounds. Compare ratios, not times. Scripts that do nothing are what no script can be cheaper
// than.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

var (
	save   = flag.String("save", "", "save what is sent in this `file`, and measure nothing")
	beside = flag.String("beside", "", "compare with what was saved in this `file`")
	only   = flag.String("only", "", "only work that matches this `pattern`")
	rounds = flag.Int("rounds", 7, "how often each is measured")
	each   = flag.Int("each", 10_000, "operations of a row in a round")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	binaries := flag.Args()
	if len(binaries) == 0 {
		binaries = []string{"redis-server"}
	}
	for _, binary := range binaries {
		if err := run(ctx, binary); err != nil {
			fmt.Fprintln(os.Stderr, "scripts:", err)
			os.Exit(1)
		}
	}
}

// row is one kind of work, of this version and of the one before.
type row struct {
	name        string
	now, before *player // before is nil if there is nothing to compare with
}

func run(ctx context.Context, binary string) error {
	server, err := measure.StartBinary(ctx, binary)
	if err != nil {
		return err
	}
	defer server.Stop()
	rows, err := allRows(ctx, server)
	if err != nil || *save != "" {
		return err
	}
	for range *rounds {
		for _, r := range rows {
			for _, p := range []*player{r.before, r.now} {
				if p == nil {
					continue
				}
				if err := p.round(ctx, server, *each); err != nil {
					return fmt.Errorf("%s: %w", r.name, err)
				}
			}
		}
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\tserver CPU\tcommands\tbefore\tcommands\tratio\t\n", binary)
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%.2f µs\t%.1f\t", r.name, median(r.now.took), r.now.commands)
		if b := r.before; b != nil {
			ratios := make([]float64, *rounds)
			for i := range ratios {
				ratios[i] = r.now.took[i] / b.took[i]
			}
			fmt.Fprintf(table, "%.2f µs\t%.1f\t%.2f\t", median(b.took), b.commands, median(ratios))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// allRows returns the rows, or saves what would be measured.
func allRows(ctx context.Context, server *measure.Server) ([]*row, error) {
	this, err := thisVersions(ctx, server.Addr)
	if err != nil {
		return nil, err
	}
	if *save != "" {
		text, err := json.Marshal(this)
		if err != nil {
			return nil, err
		}
		return nil, os.WriteFile(*save, text, 0o600)
	}
	others := make(map[string]*work)
	if *beside != "" {
		if others, err = saved(*beside); err != nil {
			return nil, err
		}
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return nil, err
	}
	var rows []*row
	for _, w := range append(this, nothing(), empty(), bare()) {
		if !wanted.MatchString(w.Name) {
			continue
		}
		r := &row{name: w.Name}
		if r.now, err = newPlayer(ctx, server.Addr, w, "now"); err != nil {
			return nil, fmt.Errorf("%s: %w", w.Name, err)
		}
		if other := others[w.Name]; other != nil {
			if r.before, err = newPlayer(ctx, server.Addr, other, "before"); err != nil {
				return nil, fmt.Errorf("%s: %w", w.Name, err)
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// saved returns the work of another version, by name.
func saved(file string) (map[string]*work, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []*work
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	byName := make(map[string]*work)
	for _, w := range all {
		if time.Since(w.Calls[0].At) > 25*time.Minute {
			return nil, fmt.Errorf("%s is too old: its calls would come late", file)
		}
		byName[w.Name] = w
	}
	return byName, nil
}
