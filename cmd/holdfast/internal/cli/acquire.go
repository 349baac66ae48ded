// holdfast acquire and extend: a lock that outlives the command, for steps of a unit or of a pipeline.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// forEval marks commands whose output a shell evaluates.
const forEval = "eval"

// failClosed prints what ends the script that evaluates the output: eval of nothing succeeds, and the script would go on
// without the lock. A shell in which somebody types only gets the exit code.
func (a *app) failClosed(code int) {
	if a.json || terminal(a.Out) {
		return // nobody evaluates it
	}
	_ = a.print("case $- in *i*) (exit %d);; *) exit %d;; esac", code, code)
}

func (a *app) acquire() *cobra.Command {
	var length time.Duration
	var w waits
	cmd := &cobra.Command{
		Use:   "acquire NAME --lease DURATION",
		Short: "Take a lock for a fixed time, and leave it held",
		Long: lines(
			"Take the Mutex of that name for a fixed time, and leave it held when the command ends: for the steps of a",
			"systemd unit or of a pipeline. Nothing renews it. It is free when the time is over, or with the first",
			"holdfast release NAME --owner OWNER. If you can, prefer holdfast run, which notices a loss.",
			"",
			"It prints lines for a shell or an EnvironmentFile:",
			"",
			"  HOLDFAST_LOCK         the name",
			"  HOLDFAST_OWNER        who holds it: a secret, since whoever knows it can release it",
			"  HOLDFAST_TOKEN        the fencing token",
			"  HOLDFAST_LEASE_UNTIL  when its time is over, by the clock of this machine",
			"",
			"If it cannot print them, it releases the lock. If there is no lock, it prints a line that ends the script which",
			"evaluates it."),
		Annotations: map[string]string{forEval: "yes"},
		Example: lines(
			`  eval "$(holdfast acquire deploy --lease 10m --wait 1m)"`,
			"  ...",
			`  holdfast release deploy --owner "$HOLDFAST_OWNER"`),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if length <= 0 {
				return usage(errors.New("--lease is required: for how long the lock is held"))
			}
			return a.lasting(cmd, func(ctx context.Context, client *holdfast.Client) error {
				lock := client.Mutex(args[0], holdfast.Fixed(length))
				t := takes(lock)
				t.see = sightOf(client, args[0])
				taken, err := w.take(ctx, a, t)
				if err != nil {
					return err
				}
				l := taken.(*holdfast.Lease) // as a Mutex has it
				if a.as != "" && !seen(ctx, client, l) {
					a.say("others do not see who holds %s", view.Name(args[0]))
				}
				return a.leave(ctx, lock, l)
			}, holdfast.WithIdentity(a.as))
		},
	}
	a.jsonFlag(cmd)
	cmd.Flags().DurationVar(&length, "lease", 0, "for how long the lock is held (required)")
	w.flags(cmd)
	cmd.Flags().StringVar(&a.as, "as", "", "who holds it, as others see it for an hour: everybody who may read from Redis")
	return cmd
}

// seen waits until others see who holds the lock: the Client writes that in the background, and does not if it
// is closed before. It waits for at most a second, and reports whether they do.
func seen(ctx context.Context, client *holdfast.Client, l *holdfast.Lease) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for {
		i, err := client.Inspect(ctx, l.Name())
		if err == nil && len(i.Holders) == 1 && i.Holders[0].Owner == l.Owner() && i.Holders[0].Who != "" {
			return true
		}
		pause := time.NewTimer(5 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return false
		}
	}
}

// atMost returns a context that ends after d, if d is not 0.
func atMost(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

// leave leaves a lock held, and prints by what it can be released. If that fails, it releases the lock.
func (a *app) leave(ctx context.Context, lock *holdfast.Mutex, l *holdfast.Lease) error {
	bounded, cancel := a.within(context.WithoutCancel(ctx)) // granted already: a signal comes too late
	defer cancel()
	left := held{lock.Name(), l.Owner().String(), l.Token(), l.Deadline().UTC().Truncate(time.Millisecond)}
	if _, err := l.Detach(bounded); err != nil {
		return errors.Join(err, l.Release(bounded))
	}
	err := a.printHeld(left)
	if err == nil {
		return nil
	}
	again, attached := lock.Attach(bounded, l.Owner())
	if attached != nil {
		return errors.Join(err, fmt.Errorf("the lock stays held until %s: %w", left.Until.Format(stamp), attached))
	}
	return errors.Join(err, again.Release(bounded))
}

func (a *app) extend() *cobra.Command {
	var length time.Duration
	var owner string
	cmd := &cobra.Command{
		Use:   "extend NAME --lease DURATION [--owner OWNER]",
		Short: "Have a lock of acquire last longer, under a new owner",
		Long: lines(
			"Have a lock that holdfast acquire took last for at least that long from now. It never ends sooner for it.",
			"",
			"The lock gets a new owner, and the old one is nobody: print and use the new one. Redis does both in one",
			"step, so the lock is held all the while, and by one owner. The new owner is printed as soon as Redis has",
			"answered, before anything else. Who holds it, as --as of acquire said, stays.",
			"",
			"With 76 the lock was no longer held by that owner, and nothing was changed. With any other code nothing was",
			"printed, and the lock belongs to the old owner as before, with one exception: if the command is killed",
			"before it can print, or if Redis has done it and cannot be reached for seconds after that, nobody knows the",
			"new owner. The lock is then free when its time is over, or by holdfast release NAME --force."),
		Annotations: map[string]string{forEval: "yes"},
		Example:     "  eval \"$(holdfast extend deploy --owner \"$HOLDFAST_OWNER\" --lease 10m)\"",
		Args:        cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if length <= 0 {
				return usage(errors.New("--lease is required: for how long the lock is held from now"))
			}
			from, err := ownerOf(owner)
			if err != nil {
				return err
			}
			return a.quick(cmd, func(ctx context.Context, client *holdfast.Client) error {
				return a.prolong(ctx, client, args[0], from, length)
			})
		},
	}
	a.jsonFlag(cmd)
	cmd.Flags().StringVar(&a.as, "as", "", "who holds it from now on, as others see it for an hour (default: who held it)")
	cmd.Flags().DurationVar(&length, "lease", 0, "for how long the lock is held from now, at least (required)")
	cmd.Flags().StringVar(&owner, "owner", "", "what acquire printed: $HOLDFAST_OWNER")
	return cmd
}

// prolong moves the hold to a new owner, with a new end, in one step. What it prints is right from then on,
// whatever comes of the rest.
func (a *app) prolong(
	ctx context.Context, client *holdfast.Client, name string, from holdfast.Owner, length time.Duration,
) error {
	who := cmp.Or(a.as, whoHolds(ctx, client, name, from))
	if who != "" {
		named, shut, err := a.open(ctx, holdfast.WithIdentity(who))
		if err != nil {
			return err
		}
		defer shut()
		client = named
	}
	lock := client.Mutex(name, holdfast.Fixed(length))
	l, err := lock.Attach(ctx, from)
	if err != nil {
		return err
	}
	left := held{lock.Name(), l.Owner().String(), l.Token(), l.Deadline().UTC().Truncate(time.Millisecond)}
	printed := a.printHeld(left)
	if printed != nil {
		printed = fmt.Errorf("the new owner could not be printed, and the lock stays held until %s: %w",
			left.Until.Format(stamp), printed)
	}
	if who != "" && !seen(ctx, client, l) {
		a.say("others do not see who holds %s", view.Name(name))
	}
	_, err = l.Detach(ctx)
	switch {
	case errors.Is(err, holdfast.ErrLost):
		return err // somebody has taken it meanwhile
	case err != nil:
		a.say("the lock was extended, and Redis did not confirm that nothing is under way any more: %v", err)
	}
	return printed
}

// whoHolds returns what the holder with that owner says that it is; "" if nobody knows.
func whoHolds(ctx context.Context, client *holdfast.Client, name string, owner holdfast.Owner) string {
	i, err := client.Inspect(ctx, name)
	if err != nil || len(i.Holders) != 1 || i.Holders[0].Owner != owner {
		return ""
	}
	return i.Holders[0].Who
}

// ownerOf returns the owner of a flag, or else that of the environment.
func ownerOf(flag string) (holdfast.Owner, error) {
	text := cmp.Or(flag, os.Getenv("HOLDFAST_OWNER"))
	if text == "" {
		return holdfast.Owner{}, usage(errors.New("--owner, or $HOLDFAST_OWNER, is required"))
	}
	return holdfast.ParseOwner(text)
}

// held is a lock that was left held.
type held struct {
	Lock  string    `json:"lock"`
	Owner string    `json:"owner"`
	Token int64     `json:"token"`
	Until time.Time `json:"lease_until"`
}

func (a *app) printHeld(h held) error {
	if a.json {
		return a.printJSON(h)
	}
	return a.print("HOLDFAST_LOCK=%s\nHOLDFAST_OWNER=%s\nHOLDFAST_TOKEN=%d\nHOLDFAST_LEASE_UNTIL=%s",
		shellWord(h.Lock), shellWord(h.Owner), h.Token, h.Until.Format(stamp))
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,-]+$`)

// shellWord returns text as one word of a shell.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
