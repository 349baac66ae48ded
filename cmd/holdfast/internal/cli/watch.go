// holdfast watch: what happens, one line each.

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/observe"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
	"github.com/holdfast-go/holdfast/internal/inspect"
)

func (a *app) watch() *cobra.Command {
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "watch [PATTERN]",
		Short: "Print what happens, one line each",
		Long: lines(
			"Print a line for each grant, release, loss, hand-over and expiry, for each waiter that comes, and for each change",
			"of a count, until a signal ends it. It looks again and again, and only reads: who has held what begins and",
			"ends between two looks, nobody knows. Of a name without wildcards the releases of such holds are counted.",
			"",
			"A name without wildcards is looked at every second, and also after each message about it: at most 20",
			"commands a second. A PATTERN, one of Redis's SCAN, is only looked at: no more than 500 names a second, and",
			"so that it rests for four fifths of the time. Looks come at most ten times a second."),
		Example: "  holdfast watch orders:42\n  holdfast watch 'orders:*' --every 5s --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := a.looks(every, args)
			if err != nil {
				return err
			}
			return a.lasting(cmd, func(ctx context.Context, client *holdfast.Client) error {
				return a.follow(inspect.WithPatience(ctx, o.Patience), client, o)
			})
		},
	}
	a.jsonFlag(cmd)
	everyFlag(cmd, &every)
	return cmd
}

// follow prints what happens, until ctx ends or looking makes no sense.
func (a *app) follow(ctx context.Context, client *holdfast.Client, o observe.Options) error {
	begun, silent, said := false, false, false
	var last error
	for e := range client.Watch(ctx, o.Pattern, holdfast.WatchEvery(o.Every)) {
		if e.What != holdfast.EventLooked {
			if err := a.printEvent(e); err != nil {
				return err
			}
			continue
		}
		last, said = e.Err, e.Err != nil && !silent
		switch {
		case said:
			a.say("%v", e.Err)
		case e.Err == nil && silent:
			a.say("all can be looked at again")
		case e.Err == nil && !begun:
			a.say("watching: %s", standing(e.Now, o.Pattern))
		}
		begun, silent = begun || e.Err == nil, e.Err != nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !said {
		return last
	}
	code, _ := codeOf(last)
	return &exit{code, nil}
}

// standing says what is there when a watch begins.
func standing(states []holdfast.Inspection, pattern string) string {
	if _, single := inspect.Single(pattern); !single || len(states) != 1 {
		return several(len(states), "name is", "names are") + " there now"
	}
	i := states[0]
	switch {
	case len(i.Holders) > 0:
		return fmt.Sprintf("%s is held now: %s", view.Name(i.Name), heldBy(i, i.Holders))
	case i.Kind == holdfast.KindFree, i.Kind == holdfast.KindMutex, i.Kind == holdfast.KindLeader, i.Kind == holdfast.KindRWLock:
		return view.Name(i.Name) + " is free now"
	}
	return fmt.Sprintf("%s is %s now: %s", view.Name(i.Name), view.A(i.Kind), view.State(i))
}

func several(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// eventJSON is an Event in JSON.
type eventJSON struct {
	At     time.Time        `json:"at"`
	Name   string           `json:"name"`
	Kind   string           `json:"kind"`
	Event  string           `json:"event"`
	Holder *view.HolderJSON `json:"holder,omitempty"` // who holds now
	From   *view.HolderJSON `json:"from,omitempty"`   // who held
	Waiter *view.WaiterJSON `json:"waiter,omitempty"`
	Times  int              `json:"times,omitempty"` // of unseen: how many releases
	Value  *int64           `json:"value,omitempty"`
	Was    *int64           `json:"was,omitempty"`
	All    int64            `json:"all,omitempty"`
}

func (a *app) printEvent(e holdfast.Event) error {
	if !a.json {
		return a.print("%s  %s  %s  %s", e.At.UTC().Format(stamp), view.Name(e.Name), e.Kind, view.Event(e))
	}
	out := eventJSON{At: e.At.UTC(), Name: e.Name, Kind: string(e.Kind), Event: string(e.What), Times: e.Times}
	if e.Holder != (holdfast.Holder{}) {
		h := view.HolderOf(e.Kind, e.Holder, false)
		out.Holder = &h
	}
	if e.From != (holdfast.Holder{}) {
		h := view.HolderOf(e.Kind, e.From, false)
		out.From = &h
	}
	switch e.What {
	case holdfast.EventWaits:
		w := view.WaiterOf(e.Waiter, e.At, false)
		out.Waiter = &w
	case holdfast.EventCounted:
		out.Value, out.Was, out.All = &e.Value, &e.Was, e.All
	}
	return a.printJSON(out)
}

// stamp is how a line gives its time.
const stamp = "2006-01-02T15:04:05.000Z07:00"
