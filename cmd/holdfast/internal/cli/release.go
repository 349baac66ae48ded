// holdfast release: gives back what acquire took, or takes from its holder what is stuck.

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
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// releasing is what the flags of release say.
type releasing struct {
	owner, permit string
	force, resign bool
	yes           *bool
}

func (a *app) release() *cobra.Command {
	var r releasing
	cmd := &cobra.Command{
		Use:   "release NAME {--owner OWNER | --force | --ask}",
		Short: "Release a lock: that of acquire, or by force one that is stuck",
		Long: lines(
			"With --owner, release what holdfast acquire took. With 76 it was no longer held by that owner.",
			"",
			"With --force, take from its holder what stands there: a Mutex or a FairMutex, both sides of an RWMutex, the",
			"lead of an election, or, with --permit, one permit of a PermitSemaphore. It says from whom, and asks first.",
			"The holder's work may still be going on: use it only if you know that it is not. The holder is notified by",
			"its next renewal; whoever waits is next. If the lock has changed hands while you were asked, nothing is changed.",
			"Who has taken what from whom, and from where, is printed on standard error, and kept in Redis for a day, where",
			"holdfast inspect shows it.",
			"",
			"With --ask, have the leader of an election resign: its work is asked to end, and the next one leads when it",
			"has. Or ask the holder of a Mutex or a FairMutex to release it: a program that listens (Lease.Asked) knows at",
			"once; to any other nothing happens."),
		Example: "  holdfast release deploy --owner \"$HOLDFAST_OWNER\"\n  holdfast release orders:42 --force",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case r.force && r.resign, r.owner != "" && (r.force || r.resign):
				return usage(errors.New("one of --owner, --force and --ask"))
			case r.permit != "" && !r.force:
				return usage(errors.New("--permit goes with --force"))
			case r.force:
				return a.lasting(cmd, func(ctx context.Context, client *holdfast.Client) error {
					return a.force(ctx, client, args[0], r)
				})
			case r.resign:
				return a.lasting(cmd, func(ctx context.Context, client *holdfast.Client) error {
					return a.askHolder(ctx, client, args[0], *r.yes)
				})
			}
			owner, err := ownerOf(r.owner)
			if err != nil {
				return err
			}
			return a.quick(cmd, func(ctx context.Context, client *holdfast.Client) error {
				return giveBack(ctx, client, args[0], owner)
			})
		},
	}
	a.jsonFlag(cmd)
	cmd.Flags().StringVar(&r.owner, "owner", "", "what acquire printed: $HOLDFAST_OWNER")
	cmd.Flags().BoolVar(&r.force, "force", false, "take it from whoever holds it")
	cmd.Flags().StringVar(&r.permit, "permit", "",
		"with --force: the permit to take, or as much of its id as inspect shows")
	cmd.Flags().BoolVar(&r.resign, "ask", false, "ask the leader of an election to resign, or the holder of a Mutex to release it")
	cmd.Flags().StringVar(&a.as, "as", "", "with --force: what is noted beside user and host, such as why")
	r.yes = confirmFlag(cmd)
	return cmd
}

// whileReleasing is how long a lock stays held if the command dies in the middle of a release, at most,
// unless it lasts longer anyway.
const whileReleasing = 10 * time.Second

// giveBack releases what is held under an owner.
func giveBack(ctx context.Context, client *holdfast.Client, name string, owner holdfast.Owner) error {
	l, err := client.Mutex(name, holdfast.Fixed(whileReleasing)).Attach(ctx, owner)
	if err != nil {
		return err
	}
	return l.Release(ctx)
}

// force takes from its holders what is stored at a name, and prints from whom.
func (a *app) force(ctx context.Context, client *holdfast.Client, name string, r releasing) error {
	i, err := a.see(ctx, client, name)
	if err != nil {
		return err
	}
	from, err := takenFrom(i, r.permit)
	if err != nil {
		return err
	}
	if len(from) == 0 {
		a.say("nobody holds %s", view.Name(name))
		return nil
	}
	err = a.askFirst(ctx, *r.yes, "Take %s from %s? The work may still be going on.", view.Name(name), heldBy(i, from))
	if err != nil {
		return err
	}
	now, err := a.see(ctx, client, name)
	if err != nil {
		return err
	}
	if still, err := takenFrom(now, r.permit); err != nil || !sameHolders(from, still) {
		return changedHands(name)
	}
	ctx, cancel := a.within(ctx)
	defer cancel()
	held, err := seize(ctx, client, i, from)
	switch {
	case err != nil:
		return fmt.Errorf("%w; it may have been taken from %s", err, heldBy(now, from))
	case !held:
		after, err := a.see(ctx, client, name)
		if err != nil {
			return err
		}
		if others, err := takenFrom(after, r.permit); err != nil || len(others) > 0 {
			return changedHands(name)
		}
		a.say("nobody holds %s any more", view.Name(name))
		return nil
	}
	a.sayForced(ctx, now, from)
	return a.tellTaken(i, from)
}

func changedHands(name string) error {
	return fmt.Errorf("%s has changed hands, and nothing was changed", view.Name(name))
}

// see inspects a name.
func (a *app) see(ctx context.Context, client *holdfast.Client, name string) (holdfast.Inspection, error) {
	ctx, cancel := a.within(ctx)
	defer cancel()
	return client.Inspect(ctx, name)
}

// takenFrom returns the holders from which force would take what was inspected.
func takenFrom(i holdfast.Inspection, permit string) ([]holdfast.Holder, error) {
	if i.Kind != holdfast.KindPermits && permit != "" && i.Kind != holdfast.KindFree {
		return nil, fmt.Errorf("%s is %s, which has no permits that are taken", view.Name(i.Name), view.A(i.Kind))
	}
	switch i.Kind {
	case holdfast.KindFree, holdfast.KindMutex, holdfast.KindLeader, holdfast.KindRWLock:
		return i.Holders, nil
	case holdfast.KindPermits:
		return onePermit(i, permit)
	case holdfast.KindSlots:
		return nil, usage(fmt.Errorf("which number? see holdfast slots free %s N", view.Name(i.Name)))
	case holdfast.KindOnce:
		return nil, fmt.Errorf("%s is work of a Once, which cannot be taken from its holder: if that is dead, "+
			"another takes over in %s", view.Name(i.Name), view.Duration(i.Remaining))
	}
	return nil, usage(fmt.Errorf("%s is %s, which nobody holds: see holdfast sem, latch, once",
		view.Name(i.Name), view.A(i.Kind)))
}

// onePermit returns the permit whose id begins so.
func onePermit(i holdfast.Inspection, begins string) ([]holdfast.Holder, error) {
	if begins == "" {
		return nil, usage(errors.New("which permit? give --permit: holdfast inspect shows them"))
	}
	begins = strings.TrimSuffix(begins, "…")
	var found []holdfast.Holder
	for _, h := range i.Holders {
		if strings.HasPrefix(h.Permit, begins) {
			found = append(found, h)
		}
	}
	if len(found) > 1 {
		return nil, usage(fmt.Errorf("%d permits begin with %q: give more of the id", len(found), begins))
	}
	return found, nil
}

// sameHolders reports whether the same hold a thing, in whatever order.
func sameHolders(a, b []holdfast.Holder) bool {
	ids := func(holders []holdfast.Holder) []string {
		var all []string
		for _, h := range holders {
			all = append(all, fmt.Sprint(h.Owner.String(), h.Permit, h.Write))
		}
		slices.Sort(all)
		return all
	}
	return slices.Equal(ids(a), ids(b))
}

// heldBy returns who the holders are, since when, and for how long they hold if they are dead.
func heldBy(i holdfast.Inspection, from []holdfast.Holder) string {
	var texts []string
	for _, h := range from {
		text := view.HolderOfKind(i.Kind, h)
		if (h.Write || i.Kind != holdfast.KindRWLock) && !i.HeldSince.IsZero() {
			text += ", for " + view.Duration(max(0, i.At.Sub(i.HeldSince)))
		}
		texts = append(texts, text+", "+view.Duration(h.Remaining)+" left")
	}
	return strings.Join(texts, "; ")
}

// seize takes what was inspected from those holders, and from no others that hold it by now, and reports whether one of
// them still held it. An error does not say that nothing was taken: an answer may be lost.
func seize(ctx context.Context, client *holdfast.Client, i holdfast.Inspection, from []holdfast.Holder) (held bool, err error) {
	switch i.Kind {
	case holdfast.KindPermits:
		err = client.PermitSemaphore(i.Name).ReleaseID(ctx, from[0].Permit)
		if errors.Is(err, holdfast.ErrLost) {
			return false, nil
		}
		return err == nil, err
	case holdfast.KindRWLock:
		lock := client.RWMutex(i.Name)
		var wrote, read bool
		if writers, some := ownersOf(from, true); some {
			wrote, err = lock.ForceRelease(ctx, writers...)
		}
		if readers, some := ownersOf(from, false); some && err == nil {
			read, err = lock.RForceRelease(ctx, readers...)
		}
		return wrote || read, err
	}
	owners, _ := ownersOf(from, false)
	return client.Mutex(i.Name).ForceRelease(ctx, owners...) // the lead of an election is a lock too
}

// ownersOf returns the owners of those that write, or of those that do not, and whether there are some. It leaves out
// ids of another program that are no Owner's: if there are no others, force takes from whoever holds it.
func ownersOf(holders []holdfast.Holder, write bool) (owners []holdfast.Owner, some bool) {
	for _, h := range holders {
		some = some || h.Write == write
		if h.Write == write && !h.Owner.IsZero() {
			owners = append(owners, h.Owner)
		}
	}
	return owners, some
}

// takenJSON is what a release has taken from whom, in JSON.
type takenJSON struct {
	Name  string            `json:"name"`
	Kind  string            `json:"kind"`
	Taken []view.HolderJSON `json:"taken_from"`
}

func (a *app) tellTaken(i holdfast.Inspection, from []holdfast.Holder) error {
	if !a.json {
		return a.print("%s: taken from %s", view.Name(i.Name), heldBy(i, from))
	}
	out := takenJSON{Name: i.Name, Kind: string(i.Kind)}
	for _, h := range from {
		out.Taken = append(out.Taken, view.HolderOf(i.Kind, h, false))
	}
	return a.printJSON(out)
}

// askHolder asks the leader of an election to resign, or the holder of a lock to release it.
func (a *app) askHolder(ctx context.Context, client *holdfast.Client, name string, yes bool) error {
	i, err := a.see(ctx, client, name)
	if err != nil {
		return err
	}
	what := "release"
	switch {
	case len(i.Holders) > 0 && i.Kind == holdfast.KindMutex:
	case len(i.Holders) > 0 && i.Kind == holdfast.KindLeader:
		what = "resign from"
	default:
		return fmt.Errorf("nobody leads %[1]s, or holds %[1]s as a Mutex", view.Name(name))
	}
	if err := a.askFirst(ctx, yes, "Ask %s to %s %s?", heldBy(i, i.Holders), what, view.Name(name)); err != nil {
		return err
	}
	ctx, cancel := a.within(ctx)
	defer cancel()
	if i.Kind == holdfast.KindLeader {
		err = client.Leader(name).RequestResign(ctx)
	} else {
		_, err = client.Mutex(name).Ask(ctx)
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.tellTaken(i, i.Holders)
	}
	return a.print("%s: asked to %s: %s", view.Name(name), strings.Fields(what)[0], heldBy(i, i.Holders))
}
