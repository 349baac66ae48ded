// holdfast run: a program under a lock.

package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/child"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// running are the flags and the arguments of run.
type running struct {
	*app
	which
	waits
	supervision
	name    string
	command []string

	busyCode        int
	atLeast, atMost time.Duration
	splay           time.Duration
	tick            string
	tickAt          time.Time // the same; set by valid
	tickKeep        time.Duration
	passOwner       bool
}

func (a *app) run() *cobra.Command {
	r := &running{app: a}
	cmd := &cobra.Command{
		Use:   "run NAME [flags] [--] COMMAND [ARGUMENT]...",
		Short: "Run a program under a lock",
		Long: `Run a program while this process holds the lock NAME, and exit as the program does. The lock is renewed while
the program runs. Without other flags it is a Mutex.

The program runs in a process group of its own, and gets the streams, the terminal and each signal of this
process. If the lock is about to be lost, the whole group gets SIGTERM, and when --grace is over SIGKILL:
before Redis grants the lock to another. If this process is killed, the program is too (on Linux).

The program finds in its environment HOLDFAST_LOCK, the name; HOLDFAST_TOKEN, the fencing token;
HOLDFAST_LEASE_UNTIL, until when the lease lasts unless it is renewed; and HOLDFAST_WAITED, in seconds.`,
		Example: `  holdfast run nightly-report ./report --all
  holdfast run deploy --try --busy-code 0 ./deploy.sh        # somebody else does it: fine
  holdfast run api -p 1 --of 5 -w 10m ./import               # five at a time, anywhere
  holdfast run report --at-least 1m --tick 2026-11-24T02:00Z ./report   # cron: once for each time`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			r.name, r.command, err = thenCommand(cmd, args)
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return r.exitCode(cmd.Context()) },
	}
	a.asFlag(cmd)
	r.which.flags(cmd)
	r.waits.flags(cmd)
	r.supervision.flags(cmd)
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.IntVarP(&r.busyCode, "busy-code", "E", codeBusy, "the exit code if another holds the lock")
	f.DurationVar(&r.atLeast, "at-least", 0, "keep the lock for so long, even if the program is done sooner")
	f.DurationVar(&r.atMost, "at-most", 0, "end the program when the lock was held for so long")
	f.DurationVar(&r.splay, "splay", 0, "wait for a random time of up to this first")
	f.StringVar(&r.tick, "tick", "", "the time that the schedule names (RFC 3339): run only once for it, wherever it is run")
	f.DurationVar(&r.tickKeep, "tick-keep", 25*time.Hour, "how long it is remembered that a tick was run")
	f.BoolVar(&r.passOwner, "pass-owner", false, "give the program HOLDFAST_OWNER, with which it can release the lock")
	return cmd
}

// thenCommand parses the arguments of a command that runs a program: NAME, flags, and the program with its arguments,
// which may follow a --. It is for flags that are not interspersed, so args begins with NAME.
func thenCommand(cmd *cobra.Command, args []string) (name string, command []string, err error) {
	f := cmd.Flags()
	if len(args) == 0 || f.ArgsLenAtDash() == 0 {
		return "", nil, errors.New("no NAME")
	}
	if err := f.Parse(args[1:]); err != nil {
		return "", nil, err
	}
	switch command = f.Args(); {
	case f.Changed("help"):
		return "", nil, pflag.ErrHelp
	case len(command) == 0:
		return "", nil, errors.New("no command to run")
	case f.ArgsLenAtDash() < 0 && len(command) > 1 && command[1] == "--":
		return "", nil, fmt.Errorf("%s %s --: one NAME, and then the command", args[0], command[0])
	}
	return args[0], command, nil
}

// exitCode runs the program under the lock, and returns its exit code as an error.
func (r *running) exitCode(ctx context.Context) error {
	if err := r.valid(); err != nil {
		return usage(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	relay := child.NewRelay(cancel)
	defer relay.Stop()
	code, err := r.take(ctx, relay)
	if s := relay.Asked(); s != 0 && (errors.Is(err, context.Canceled) || errors.Is(err, child.ErrAsked)) {
		return &exit{128 + int(s), nil}
	}
	if busy, _ := codeOf(err); busy == codeBusy {
		return &exit{r.busyCode, err}
	}
	if err == nil && code != 0 {
		return &exit{code, nil}
	}
	return err
}

func (r *running) valid() (err error) {
	switch mutex := len(r.multi) == 0 && len(r.quorum) == 0 && !r.shared && !r.exclusive && r.permits == 0; {
	case r.busyCode < 0 || r.busyCode > 255:
		return fmt.Errorf("--busy-code %d is no exit code: 0 to 255", r.busyCode)
	case r.given("permits") && r.permits < 1:
		return fmt.Errorf("--permits %d: at least 1", r.permits)
	case r.atLeast > 0 && !mutex:
		return errors.New("--at-least goes with a Mutex and with --fair only")
	case r.tick == "" && r.given("tick-keep"):
		return errors.New("--tick-keep goes with --tick")
	case r.tick != "" && len(r.quorum) > 0:
		return errors.New("--tick does not go with --quorum")
	}
	if r.tick != "" {
		if r.tickAt, err = parseTime(r.tick); err != nil {
			return fmt.Errorf("--tick: %w", err)
		}
	}
	return r.supervision.valid(r.atMost)
}

// take waits for the lock, and runs the program under it.
func (r *running) take(ctx context.Context, relay *child.Relay) (code int, err error) {
	if err := r.spread(ctx); err != nil {
		return 0, err
	}
	options := []holdfast.LeaseOption{holdfast.Renewed(r.lease)}
	if r.atMost > 0 {
		options = append(options, holdfast.MaxHold(r.atMost))
	}
	lock, shut, err := r.openLock(ctx, r.app, r.name, options...)
	if err != nil {
		return 0, err
	}
	defer shut()
	if r.tick != "" {
		if won, err := r.wins(ctx); err != nil || !won {
			return 0, err
		}
	}
	begun := time.Now()
	l, err := r.waits.take(ctx, r.app, lock)
	if err != nil {
		return 0, err
	}
	waited := time.Since(begun)
	if waited > time.Second {
		r.say("%s: granted after %v", view.Name(r.names(r.name)), waited.Round(100*time.Millisecond))
	}
	code, err = r.work(ctx, relay, l, waited)
	return r.giveBack(l, code, err)
}

// spread waits for a random part of --splay.
func (r *running) spread(ctx context.Context) error {
	if r.splay <= 0 {
		return nil
	}
	d := rand.N(r.splay)
	if d > time.Second {
		r.say("%s: begins in %v", view.Name(r.names(r.name)), d.Round(time.Second))
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// work runs the program under the lease.
func (r *running) work(ctx context.Context, relay *child.Relay, l holding, waited time.Duration) (code int, err error) {
	if r.atLeast > 0 {
		if err := l.(*holdfast.Lease).AtLeast(ctx, r.atLeast); err != nil {
			return 0, err
		}
	}
	if n, ok := l.(interface{ Note(string) }); ok {
		n.Note(base(r.command[0]))
	}
	lock := watched{child.Hold{Done: l.Done(), Deadline: l.Deadline}, r.length(), l.Err}
	lock.whole()
	return r.supervise(r.supervision, relay, lock, r.streams(r.command, append(r.env(l), "HOLDFAST_WAITED="+seconds(waited))))
}

// length returns how long the lease is at most.
func (r *running) length() time.Duration {
	if r.atMost > 0 {
		return min(r.lease, r.atMost)
	}
	return r.lease
}

// env returns what the program gets of the lock.
func (r *running) env(l holding) []string {
	env := []string{"HOLDFAST_LOCK=" + r.name, "HOLDFAST_LEASE_UNTIL=" + l.Deadline().Format(time.RFC3339Nano)}
	if t, ok := l.(interface{ Token() int64 }); ok && t.Token() != 0 {
		env = append(env, "HOLDFAST_TOKEN="+strconv.FormatInt(t.Token(), 10))
	}
	if o, ok := l.(interface{ Owner() holdfast.Owner }); ok && r.passOwner {
		env = append(env, "HOLDFAST_OWNER="+o.Owner().String())
	}
	return env
}

// giveBack releases the lease after the program has ended with that code, or with that error, which has been said.
func (r *running) giveBack(l holding, code int, err error) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
	defer cancel()
	if e := l.Release(ctx); err == nil {
		return r.released(code, e)
	}
	return code, err
}

// wins reports whether this process has won the tick.
func (r *running) wins(ctx context.Context) (bool, error) {
	client, shut, err := r.open(ctx, r.identity()...)
	if err != nil {
		return false, err
	}
	defer shut()
	won, err := client.Tick(ctx, r.name, r.tickAt, r.tickKeep)
	if err == nil && !won {
		r.say("%s: another has run the tick %s", view.Name(r.name), r.tick)
	}
	return won, err
}

// parseTime parses a time of RFC 3339; its seconds may be left out.
func parseTime(text string) (time.Time, error) {
	if t, err := time.Parse("2006-01-02T15:04Z07:00", text); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339, text)
}

// streams returns the program of a command, which inherits the streams of this one.
func (a *app) streams(command, env []string) child.Program {
	of := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(ours, name)
	})
	return child.Program{Args: command, Env: append(of, env...), In: a.In, Out: a.Out, Err: a.Err}
}

// ours are the variables that say something of a lock or a term. Those of a command around this one are of another
// lock: the program could pass on a token that fences nothing, or release what is not its own.
var ours = []string{
	"HOLDFAST_LOCK", "HOLDFAST_ELECTION", "HOLDFAST_TOKEN", "HOLDFAST_OWNER", "HOLDFAST_LEASE_UNTIL", "HOLDFAST_WAITED",
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
