// holdfast tick: shows and forgets that a tick was taken.

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

func (a *app) tick() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tick",
		Short: "Show and forget which ticks of a schedule were taken",
		Args:  cobra.NoArgs,
		RunE:  needsCommand,
	}
	cmd.AddCommand(a.tickShow(), a.tickForget())
	return cmd
}

// tickAt is one tick: that of a name at a time of its schedule.
type tickAt struct {
	name string
	time time.Time
	key  string
}

// tickJSON is what Redis knows of a tick, in JSON.
type tickJSON struct {
	Name  string    `json:"name"`
	Tick  time.Time `json:"tick"`
	Taken bool      `json:"taken"`
	Owner string    `json:"owner,omitempty"`             // short: by whom it was taken
	Kept  *float64  `json:"remaining_seconds,omitempty"` // until it is forgotten
}

func (a *app) tickOf(name, text string) (tickAt, error) {
	at, err := parseTime(text)
	if err != nil {
		return tickAt{}, usage(fmt.Errorf("%q is no time such as 2026-11-22T10:00:00Z", text))
	}
	key, err := a.access.space().ForTick(a.access.space().At(name), at)
	return tickAt{name, at.UTC(), key}, err
}

func (t tickAt) String() string { return view.Name(t.name) + " at " + t.time.Format(time.RFC3339Nano) }

// read returns who has taken a tick, "" if nobody has, and for how long that is remembered.
func (t tickAt) read(ctx context.Context, rdb redis.UniversalClient) (owner string, kept time.Duration, err error) {
	owner, err = rdb.Get(ctx, t.key).Result()
	if errors.Is(err, redis.Nil) {
		return "", 0, nil
	}
	if err == nil {
		kept, err = rdb.PTTL(ctx, t.key).Result()
	}
	return owner, kept, denied(err)
}

// denied returns what Redis does not allow as an error of the library.
func denied(err error) error {
	if redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "NOAUTH") || redis.HasErrorPrefix(err, "WRONGPASS") {
		return fmt.Errorf("%w: %w", holdfast.ErrDenied, err)
	}
	return err
}

// withTick runs f with a client of Redis, for a context that ends at a signal.
func (a *app) withTick(cmd *cobra.Command, args []string, f func(context.Context, redis.UniversalClient, tickAt) error) error {
	t, err := a.tickOf(args[0], args[1])
	if err != nil {
		return err
	}
	return a.lasting(cmd, func(ctx context.Context, _ *holdfast.Client) error {
		rdb, err := a.second()
		if err != nil {
			return usage(err)
		}
		defer func() { _ = rdb.Close() }()
		return f(ctx, rdb, t)
	})
}

func (a *app) tickShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME TIME",
		Short: "Show whether a tick was taken, and for how long that is remembered",
		Long: lines(
			"Show whether the tick of NAME at TIME, as holdfast run --tick TIME or Client.Tick takes it, was taken, by which",
			"owner, and for how long that is remembered: so long no other takes it. TIME is in RFC 3339."),
		Example: "  holdfast tick show nightly-report 2026-11-22T03:00:00Z",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTick(cmd, args, func(ctx context.Context, rdb redis.UniversalClient, t tickAt) error {
				ctx, cancel := a.within(ctx)
				defer cancel()
				owner, kept, err := t.read(ctx, rdb)
				if err != nil {
					return err
				}
				return a.printTick(t, owner, kept)
			})
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) printTick(t tickAt, owner string, kept time.Duration) error {
	short := "" // whoever knows the whole owner could give the tick back
	if o, err := holdfast.ParseOwner(owner); err == nil {
		short = o.Short()
	}
	if a.json {
		out := tickJSON{Name: t.name, Tick: t.time, Taken: owner != "", Owner: short}
		if out.Taken {
			left := kept.Round(time.Millisecond).Seconds()
			out.Kept = &left
		}
		return a.printJSON(out)
	}
	if owner == "" {
		return a.print("%s: not taken", t)
	}
	return a.print("%s: taken by %s, remembered for %s", t, short, view.Duration(kept))
}

// forget deletes a tick if it is still taken by the same owner.
var forget = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

func (a *app) tickForget() *cobra.Command {
	var yes *bool
	cmd := &cobra.Command{
		Use:   "forget NAME TIME",
		Short: "Forget that a tick was taken, so that the next one to come takes it",
		Long: lines(
			"Forget that the tick of NAME at TIME was taken: the next one to come with it takes it, and works. Use it if who",
			"took it could not do the work. It asks first. If nobody has taken it, nothing is changed."),
		Example: "  holdfast tick forget nightly-report 2026-11-22T03:00:00Z",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTick(cmd, args, func(ctx context.Context, rdb redis.UniversalClient, t tickAt) error {
				looking, cancel := a.within(ctx)
				defer cancel()
				owner, _, err := t.read(looking, rdb)
				switch {
				case err != nil:
					return err
				case owner == "":
					a.say("%s: nobody has taken it", t)
					return nil
				}
				if err := a.askFirst(ctx, *yes, "Forget %s? The next one to come then works for it.", t); err != nil {
					return err
				}
				ctx, cancel = a.within(ctx)
				defer cancel()
				return denied(forget.Run(ctx, rdb, []string{t.key}, owner).Err())
			})
		},
	}
	yes = confirmFlag(cmd)
	return cmd
}
