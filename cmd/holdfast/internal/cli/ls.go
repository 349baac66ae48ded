// holdfast ls: what is in Redis, one line each, as it is found.

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/roster"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
	"github.com/holdfast-go/holdfast/internal/inspect"
)

// listing is what the flags of ls say.
type listing struct {
	wide, owners, waited bool
	older                time.Duration
	sort                 string
}

// orders are what a list may be sorted by, and whether the greatest comes first.
var orders = map[string]roster.Query{
	"name": {Sort: roster.ByName}, "age": {Sort: roster.ByAge, Down: true},
	"left": {Sort: roster.ByLeft}, "waiters": {Sort: roster.ByWaiters, Down: true},
}

func (a *app) ls() *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "ls [PATTERN]",
		Short: "List who holds what",
		Long: lines(
			"List the locks, elections, semaphores, latches and so on that stand in Redis: who holds each, since",
			"when, for how long if nobody renews it, and how many wait. PATTERN is one of Redis's SCAN: orders:*.",
			"",
			"It only reads. Of a PATTERN without wildcards it looks at that name. Else it goes over all keys of Redis, since",
			"Redis has no list of names, and takes no more than half of the server's time. It prints what it finds as it",
			"finds it. What is found within half a second is in the order of names; --sort sorts it all, and prints",
			"nothing before it has looked at all. At a terminal it says how far it is."),
		Example: "  holdfast ls 'orders:*'\n  holdfast ls --older 10m --sort age\n  holdfast ls --waiters --json | jq -r .name",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.valid(a.json, cmd.Flags().Changed("older")); err != nil {
				return usage(err)
			}
			return a.lasting(cmd, func(ctx context.Context, client *holdfast.Client) error {
				return a.list(ctx, client, strings.Join(args, ""), l)
			})
		},
	}
	a.jsonFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&l.wide, "wide", false, "show notes too, and each waiter on a line of its own")
	flags.BoolVar(&l.owners, "owners", false, "with --json: whole owners and permits, by which anybody can release what they hold")
	flags.DurationVar(&l.older, "older", 0, "only what has been held for longer than that, as far as that is known")
	flags.BoolVar(&l.waited, "waiters", false, "only what somebody waits for")
	flags.StringVar(&l.sort, "sort", "", "name, age (held for longest first), left (ends soonest first) or waiters (most first)")
	return cmd
}

func (l listing) valid(json, older bool) error {
	_, known := orders[l.sort]
	switch {
	case l.owners && !json:
		return errors.New("--owners goes with --json")
	case older && l.older <= 0:
		return errors.New("--older must be more than 0")
	case l.sort != "" && !known:
		return fmt.Errorf("--sort %q: want name, age, left or waiters", l.sort)
	}
	return nil
}

// wants reports whether an inspection is to be listed, and whether that cannot be known.
func (l listing) wants(i holdfast.Inspection) (wanted, unknown bool) {
	if l.waited && i.Waiters <= 0 {
		return false, i.Waiters < 0 && len(i.Holders) > 0
	}
	if l.older > 0 {
		unknown = i.HeldSince.IsZero() && len(i.Holders) > 0
		return !i.HeldSince.IsZero() && i.At.Sub(i.HeldSince) >= l.older, unknown
	}
	return true, false
}

// found is one thing that a look over many names has found.
type found struct {
	holdfast.Inspection
	err error
}

// search looks for names, and sends what it finds until that is all, or ctx ends.
func (a *app) search(ctx context.Context, client *holdfast.Client, pattern string) <-chan found {
	all := make(chan found, 64)
	send := func(f found) bool {
		select {
		case all <- f:
			return true
		case <-ctx.Done():
			return false
		}
	}
	go func() {
		defer close(all)
		if name, single := inspect.Single(pattern); single {
			i, err := client.Inspect(ctx, name)
			if over := i.Kind == holdfast.KindFree || i.Kind == holdfast.KindUnknown || ended(i); err != nil || !over {
				send(found{i, err})
			}
			return
		}
		for i, err := range client.InspectAll(ctx, pattern) {
			if !send(found{i, err}) {
				return
			}
		}
	}()
	return all
}

// ended reports whether nothing goes on any more at a name, such as a Once whose work is done.
func ended(i holdfast.Inspection) bool {
	return slices.Contains([]string{"done", "failed", "tripped", "broken"}, i.State)
}

const (
	together = 500 * time.Millisecond // what is found until then is sorted, and decides how wide the columns are
	speaks   = time.Second            // after so long without a line, a terminal shows how far it is
)

// list prints what it finds. If it could not look at some names, it says so, and returns the first such error beside
// the rest.
func (a *app) list(ctx context.Context, client *holdfast.Client, pattern string, l listing) error {
	ctx, stop, err := a.whileAnswering(ctx)
	if err != nil {
		return err
	}
	defer stop()
	ctx, cancel := context.WithCancel(ctx) // the search ends with this
	var progress inspect.Progress
	all := a.search(inspect.WithProgress(ctx, &progress), client, pattern)
	defer func() {
		cancel()
		for range all { // until it has ended
		}
	}()
	p := printer{app: a, listing: l, table: table{out: a.Out}}
	first, tells := time.NewTimer(together), time.NewTicker(speaks)
	defer first.Stop()
	defer tells.Stop()
	for {
		select {
		case f, more := <-all:
			if !more {
				return p.end(ctx)
			}
			if err := p.take(f, len(all) == 0); err != nil {
				return err
			}
		case <-first.C:
			if l.sort == "" {
				if err := p.flush(); err != nil {
					return err
				}
			}
		case <-tells.C:
			p.tell(progress.Percent())
		}
	}
}

// printer prints what a listing finds.
type printer struct {
	*app
	listing
	table
	kept    []holdfast.Inspection // not printed yet
	flows   bool                  // what is found is printed at once
	unknown int                   // names that were left out, since nobody knows since when they are held
	failed  error
	printed time.Time
	told    bool // the last line on a terminal says how far it is
}

// take takes in what was found. last says that nothing more is there at present.
func (p *printer) take(f found, last bool) error {
	switch {
	case f.err != nil && p.failed == nil:
		p.failed = f.err
		return nil
	case f.err != nil:
		p.say("%v", f.err)
		return nil
	}
	wanted, unknown := p.wants(f.Inspection)
	if unknown {
		p.unknown++
	}
	if !wanted {
		return nil
	}
	if !p.flows {
		p.kept = append(p.kept, f.Inspection)
		return nil
	}
	if err := p.line(f.Inspection); err != nil || !last {
		return err
	}
	return p.table.flush()
}

// flush prints what was kept, in its order. What follows is printed as it comes.
func (p *printer) flush() error {
	slices.SortFunc(p.kept, func(a, b holdfast.Inspection) int { return strings.Compare(a.Name, b.Name) })
	if p.sort != "" {
		p.kept = orders[p.sort].Of(p.kept)
	}
	for _, i := range p.kept {
		p.measure(p.cells(i)...)
	}
	for _, i := range p.kept {
		if err := p.line(i); err != nil {
			return err
		}
	}
	p.kept, p.flows = nil, true
	return p.table.flush()
}

// end prints the rest, and says what is missing.
func (p *printer) end(ctx context.Context) error {
	if err := p.flush(); err != nil {
		return err
	}
	p.hush()
	if p.unknown > 0 {
		p.say("%s left out: that is not known of them", several(p.unknown, "name that is held is", "names that are held are"))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return p.failed
}

// tell says on a terminal how far it is, if nothing else is printed.
func (p *printer) tell(percent int) {
	if terminal(p.Err) && time.Since(p.printed) >= speaks {
		fmt.Fprintf(p.Err, "\rholdfast: %d %% of the keys are looked at\x1b[K", percent)
		p.told = true
	}
}

// hush takes that line away.
func (p *printer) hush() {
	if p.told {
		fmt.Fprint(p.Err, "\r\x1b[K")
	}
	p.told = false
}

// line prints one inspection.
func (p *printer) line(i holdfast.Inspection) error {
	p.hush()
	p.printed = time.Now()
	if p.json {
		line, err := view.Line(view.JSON(i, p.owners))
		if err != nil {
			return err
		}
		return p.raw(line)
	}
	return p.rows(p.heading(), p.cells(i)...)
}

func (p *printer) heading() []string {
	heading := []string{"NAME", "KIND", "HELD BY", "SINCE", "LEFT", "WAITERS"}
	if p.wide {
		heading = append(heading, "NOTES")
	}
	return heading
}

// cells returns the rows of one inspection.
func (p *printer) cells(i holdfast.Inspection) [][]string {
	if p.json {
		return nil
	}
	row := []string{view.Name(i.Name), string(i.Kind), view.State(i), view.Ago(i.HeldSince, i.At), view.Left(i), view.Waiters(i)}
	if !p.wide {
		return [][]string{row}
	}
	notes := view.Notes(i)
	if notes == "" {
		notes = view.None
	}
	rows := [][]string{append(row, notes)}
	for n, q := range i.Queue {
		rows = append(rows, []string{fmt.Sprintf("  %d.", n+1), "waits", view.Waiter(q), view.Ago(q.Since, i.At)})
	}
	return rows
}
