// holdfast once: shows and forgets what has been done once.

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
	"github.com/holdfast-go/holdfast/internal/keys"
)

func (a *app) once() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "once",
		Short: "Show and forget what has been done once",
		Args:  cobra.NoArgs,
		RunE:  needsCommand,
	}
	cmd.AddCommand(a.onceShow(), a.onceForget())
	return cmd
}

func (a *app) onceShow() *cobra.Command {
	var result bool
	cmd := &cobra.Command{
		Use:   "show NAME KEY",
		Short: "Show whether the work of a key is under way, done or failed",
		Long: lines(
			"Show whether the work of a key of a Once is under way, and whose it is; or done or failed, and for how long",
			"its result is kept. The result itself may be a secret, so it is printed only with --result, and alone:",
			"the bytes as they are kept, or the text of the error. On a terminal what is not plain text is quoted."),
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := a.onceAt(args[0], args[1])
			if err != nil {
				return err
			}
			if result && a.json {
				return usage(errors.New("either --result or --json"))
			}
			return a.quick(cmd, func(ctx context.Context, client *holdfast.Client) error {
				if result {
					return a.onceResult(ctx, at.Record)
				}
				i, err := client.Inspect(ctx, at.Whole)
				switch {
				case err != nil:
					return err
				case a.json:
					return a.printJSON(view.JSON(i, false))
				case i.Kind != holdfast.KindOnce:
					return a.print("%s: not done", view.Name(at.Whole))
				}
				return a.detail(i)
			})
		},
	}
	a.jsonFlag(cmd)
	cmd.Flags().BoolVar(&result, "result", false, "print the result, or the error, and nothing else")
	return cmd
}

// onceAt returns the keys of a key of a Once, and its whole name as Inspect takes it.
func (a *app) onceAt(name, key string) (keys.Once, error) {
	space := a.access.space()
	at, err := space.ForOnce(space.At(name), key)
	at.Whole, _ = space.Name(at.Whole)
	return at, err
}

// onceResult prints the result of a record, or its error.
func (a *app) onceResult(ctx context.Context, record string) error {
	rdb, err := a.second()
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()
	fields, err := rdb.HMGet(ctx, record, "result", "error").Result()
	switch {
	case redis.HasErrorPrefix(err, "NOPERM"):
		return fmt.Errorf("%w: %w", holdfast.ErrDenied, err)
	case err != nil:
		return err
	}
	for _, field := range fields {
		text, kept := field.(string)
		switch {
		case !kept:
			continue
		case terminal(a.Out):
			return a.print("%s", view.Text(text))
		}
		_, err := a.Out.WriteString(text)
		return err
	}
	return errors.New("no result is kept")
}

func (a *app) onceForget() *cobra.Command {
	var yes *bool
	cmd := &cobra.Command{
		Use:   "forget NAME KEY",
		Short: "Forget a result, so that the work is done again",
		Long: lines(
			"Forget the result of a key of a Once, so that the next call does the work again. It asks first. If there is",
			"no result, nothing is changed. With 75 the work is under way, and nothing was changed."),
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := a.onceAt(args[0], args[1])
			if err != nil {
				return err
			}
			return a.lasting(cmd, func(ctx context.Context, client *holdfast.Client) error {
				i, err := a.see(ctx, client, at.Whole)
				switch {
				case err != nil:
					return err
				case i.Kind != holdfast.KindOnce:
					a.say("%s: there is no result", view.Name(at.Whole))
					return nil
				}
				err = a.askFirst(ctx, *yes, "Forget %s, which is %s? The work is then done again.", view.Name(at.Whole), i.State)
				if err != nil {
					return err
				}
				ctx, cancel := a.within(ctx)
				defer cancel()
				return client.Once(args[0]).Forget(ctx, args[1])
			})
		},
	}
	yes = confirmFlag(cmd)
	return cmd
}
