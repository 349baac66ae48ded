// holdfast sem: sets, changes and drains the permits of a semaphore of either kind.

package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// semKind is what the flags say of a semaphore's kind.
type semKind struct{ permits, counting bool }

func (a *app) sem() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sem",
		Short: "Set, change and drain the permits of a semaphore",
		Long: lines(
			"Set, change and drain the permits of a Semaphore, or of a PermitSemaphore.",
			"",
			"Redis does not always tell the two apart. Where it does not, say which it is: --permits for a",
			"PermitSemaphore, whose permits are leased; --counting for a Semaphore. If that is wrong, programs that use",
			"it get wrong numbers."),
		Args: cobra.NoArgs,
		RunE: needsCommand,
	}
	cmd.AddCommand(a.semSet(), a.semAdd(), a.semDrain(),
		a.show("semaphore", holdfast.KindSemaphore, "Show how many permits are free, and which are taken",
			holdfast.KindPermits))
	return cmd
}

func (k *semKind) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&k.permits, "permits", false, "it is a PermitSemaphore")
	cmd.Flags().BoolVar(&k.counting, "counting", false, "it is a Semaphore")
}

// leased returns whether the permits at a name are leased: whether it is a PermitSemaphore.
func (k semKind) leased(ctx context.Context, client *holdfast.Client, name string) (bool, error) {
	if k.permits && k.counting {
		return false, usage(errors.New("either --permits or --counting"))
	}
	i, err := expect(ctx, client, name, holdfast.KindSemaphore, holdfast.KindPermits)
	switch {
	case err != nil:
		return false, err
	case i.Kind == holdfast.KindSemaphore && k.permits, i.Kind == holdfast.KindPermits && k.counting:
		return false, usage(fmt.Errorf("%s is of the other kind", view.Name(name)))
	case i.Kind == holdfast.KindSemaphore, i.Kind == holdfast.KindPermits:
		return i.Kind == holdfast.KindPermits, nil
	case !k.permits && !k.counting:
		return false, usage(fmt.Errorf("of which kind the semaphore %s is, Redis does not say: give --permits or --counting",
			view.Name(name)))
	}
	return k.permits, nil
}

func (a *app) semSet() *cobra.Command {
	var kind semKind
	cmd := &cobra.Command{
		Use:   "set NAME N",
		Short: "Set how many permits there are in all",
		Long: lines(
			"Set how many permits there are in all. A PermitSemaphore may be set again: if more are taken, they stay so",
			"until their holders give them back. A Semaphore is set once: if it is set, exit with 1, and see sem add."),
		Example: "  holdfast sem set uploads 8 --permits",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return usage(fmt.Errorf("%q is not a whole number", args[1]))
			}
			return a.quick(cmd, func(ctx context.Context, client *holdfast.Client) error {
				leased, err := kind.leased(ctx, client, args[0])
				if err != nil {
					return err
				}
				if leased {
					return client.PermitSemaphore(args[0]).SetPermits(ctx, n)
				}
				set, err := client.Semaphore(args[0]).TrySetPermits(ctx, n)
				if err == nil && !set {
					err = fmt.Errorf("%s is set already: see holdfast sem add", view.Name(args[0]))
				}
				return err
			})
		},
	}
	kind.flags(cmd)
	return cmd
}

// negative is an argument of sem add that looks like a flag.
var negative = regexp.MustCompile(`^-\d+$`)

func (a *app) semAdd() *cobra.Command {
	var kind semKind
	cmd := &cobra.Command{
		Use:   "add NAME N",
		Short: "Add N permits; take N away if N is negative",
		Long: lines(
			"Change how many permits there are in all by N, which may be negative: then the number that are free may be",
			"negative too, until enough are given back. If Redis did not answer, it may have been changed all the same:",
			"look before you repeat it."),
		Example:            "  holdfast sem add uploads -2",
		DisableFlagParsing: true, // it would take -2 for a flag
	}
	kind.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, n, done, err := semAddArgs(cmd, args)
		if err != nil || done {
			return err
		}
		return a.quick(cmd, func(ctx context.Context, client *holdfast.Client) error {
			leased, err := kind.leased(ctx, client, name)
			switch {
			case err != nil:
				return err
			case leased:
				return client.PermitSemaphore(name).AddPermits(ctx, n)
			}
			return client.Semaphore(name).AddPermits(ctx, n)
		})
	}
	return cmd
}

// semAddArgs parses the arguments of sem add, in which a negative number is no flag. It has done all if help was
// asked for.
func semAddArgs(cmd *cobra.Command, args []string) (name string, n int, done bool, err error) {
	cmd.DisableFlagParsing = false
	if at := slices.IndexFunc(args, negative.MatchString); at >= 0 {
		number := args[at]
		args = append(slices.Delete(slices.Clone(args), at, at+1), "--", number)
	}
	if err := cmd.ParseFlags(args); err != nil {
		return "", 0, false, usage(err)
	}
	if help, _ := cmd.Flags().GetBool("help"); help {
		return "", 0, true, cmd.Help()
	}
	rest := cmd.Flags().Args()
	if err := sound(cmd, rest); err != nil { // before, no flag was known
		return "", 0, false, usage(err)
	}
	if len(rest) != 2 {
		return "", 0, false, usage(fmt.Errorf("want a name and a number: see %s --help", cmd.CommandPath()))
	}
	if n, err = strconv.Atoi(rest[1]); err != nil {
		return "", 0, false, usage(fmt.Errorf("%q is not a whole number", rest[1]))
	}
	return rest[0], n, false, nil
}

func (a *app) semDrain() *cobra.Command {
	var kind semKind
	cmd := &cobra.Command{
		Use:   "drain NAME",
		Short: "Take all permits of a Semaphore that are free, and print how many",
		Long: lines(
			"Take all permits of a Semaphore that are free, and print how many that were: nobody gets one until some are",
			"added or released. A PermitSemaphore cannot be drained: set it to 0."),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.quick(cmd, func(ctx context.Context, client *holdfast.Client) error {
				leased, err := kind.leased(ctx, client, args[0])
				switch {
				case err != nil:
					return err
				case leased:
					return usage(errors.New("a PermitSemaphore cannot be drained: see holdfast sem set"))
				}
				n, err := client.Semaphore(args[0]).Drain(ctx)
				if err != nil {
					return err
				}
				return a.print("%d", n)
			})
		},
	}
	kind.flags(cmd)
	return cmd
}
