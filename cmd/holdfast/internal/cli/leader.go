// holdfast leader: a program that runs while this process leads.

package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/child"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
	"github.com/holdfast-go/holdfast/leader"
)

// leading are the flags and the arguments of leader.
type leading struct {
	*app
	supervision
	name    string
	command []string

	once     bool
	http     string
	value    string
	priority int
	preempt  bool
	maxTerm  time.Duration

	final bool  // the program's last run was the last
	end   error // how that run ended: an exit, or nil
}

func (a *app) leader() *cobra.Command {
	l := &leading{app: a}
	cmd := &cobra.Command{
		Use:   "leader NAME [flags] [--] COMMAND [ARGUMENT]...",
		Short: "Run a program while this process leads",
		Long: `Campaign in the election NAME, and run a program in each term in which this process leads. When a term ends, by
a loss, by a request, or because it was long enough, the program gets SIGTERM, and when --grace is over
SIGKILL. Another leads once the program has ended, and before the lease is over in any case.

If the program ends of its own accord with 0, this process resigns for good, and exits with 0. If it ends with another
code, this process gives the lead up, and campaigns again a second later. With --once it exits after the first
term, as the program does. A signal that asks this process to end goes to the program; once that has ended,
this process exits as it does.

The program finds in its environment HOLDFAST_ELECTION, HOLDFAST_TOKEN and HOLDFAST_LEASE_UNTIL.`,
		Example: `  holdfast leader scheduler --http localhost:4040 ./scheduler`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			l.name, l.command, err = thenCommand(cmd, args)
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return l.exitCode(cmd.Context()) },
	}
	a.asFlag(cmd)
	l.supervision.flags(cmd)
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.BoolVar(&l.once, "once", false, "exit after the first term")
	f.StringVar(&l.http, "http", "", "serve probes at this address: / is 200 if this process leads, 503 if not; /healthz is 200 if it "+
		"leads or campaigns as it should")
	f.StringVar(&l.value, "value", "", "what the leader says of itself, such as its address")
	f.IntVar(&l.priority, "priority", 0, "candidates of higher priority lead first")
	f.BoolVar(&l.preempt, "preempt", false, "take the lead from a leader of lower priority")
	f.DurationVar(&l.maxTerm, "max-term", 0, "resign after about so long, so that others lead too")
	return cmd
}

// exitCode campaigns and leads, and returns the exit code as an error.
func (l *leading) exitCode(ctx context.Context) error {
	if err := l.valid(0); err != nil {
		return usage(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	relay := child.NewRelay(cancel)
	defer relay.Stop()
	client, shut, err := l.open(ctx, append(l.identity(), holdfast.WithLogger(l.warnings()))...)
	if err != nil {
		return l.unless(relay, err)
	}
	defer shut()
	election := client.Leader(l.name, l.options()...)
	// Run outlasts a refusal, since an operator may mend it. At the start it is more likely to be a wrong URL.
	if _, err := election.Leader(ctx); errors.Is(err, holdfast.ErrDenied) {
		return err
	}
	stop, err := l.serve(election)
	if err != nil {
		return err
	}
	defer stop()
	err = election.Run(ctx, func(ctx context.Context, term *leader.Term) error {
		err := l.lead(ctx, relay, term)
		if l.final = l.final || l.once || err == nil || l.key != 0 || relay.Asked() != 0; l.final {
			l.end = err
			if err != nil || ctx.Err() != nil {
				cancel() // or Run would campaign again
			}
		}
		return err
	})
	switch {
	case !l.final:
		return l.unless(relay, err)
	case l.end == nil && !errors.Is(err, context.Canceled):
		_, err = l.released(0, err)
		return err
	}
	return l.unless(relay, l.end)
}

// warnings returns a logger for what the library warns of while Run goes on: a campaign that failed, an outage.
func (l *leading) warnings() *slog.Logger {
	return slog.New(slog.NewTextHandler(l.Err, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// unless returns err, unless this process was asked to end before a program ran: then the code of the signal.
func (l *leading) unless(relay *child.Relay, err error) error {
	if s := relay.Asked(); s != 0 && (errors.Is(err, context.Canceled) || errors.Is(err, child.ErrAsked)) {
		return &exit{128 + int(s), nil}
	}
	return err
}

func (l *leading) options() []leader.Option {
	options := []leader.Option{leader.Lease(l.lease), leader.Priority(l.priority)}
	if who := l.who(); who != "" {
		options = append(options, leader.Identity(who))
	}
	if l.value != "" {
		options = append(options, leader.Value(l.value))
	}
	if l.preempt {
		options = append(options, leader.Preempt())
	}
	if l.maxTerm > 0 {
		options = append(options, leader.MaxTerm(l.maxTerm))
	}
	return options
}

// lead is one term. It returns how the program ended, nil if with 0.
func (l *leading) lead(ctx context.Context, relay *child.Relay, term *leader.Term) error {
	l.say("%s: leads", view.Name(l.name))
	why := func() error { return context.Cause(ctx) }
	lead := watched{child.Hold{Done: ctx.Done(), Deadline: term.Deadline}, l.lease, why}
	lead.whole()
	env := []string{
		"HOLDFAST_ELECTION=" + l.name,
		"HOLDFAST_TOKEN=" + strconv.FormatInt(term.Token(), 10),
		"HOLDFAST_LEASE_UNTIL=" + term.Deadline().Format(time.RFC3339Nano),
	}
	code, err := l.supervise(l.supervision, relay, lead, l.streams(l.command, env))
	switch {
	case errors.As(err, new(*child.NotStarted)):
		l.final = true // it will not be found in the next term either
		return err
	case err == nil && code == 0 && lost(context.Cause(ctx)): // just as the program ended
		_, err = l.released(0, context.Cause(ctx))
		return err
	case err != nil || code == 0:
		return err
	}
	l.say("%s: the program ended with code %d", view.Name(l.name), code)
	return &exit{code, nil}
}

// serve answers probes, if that is asked for. stop ends it.
func (l *leading) serve(election *holdfast.Election) (stop func(), err error) {
	if l.http == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", l.http)
	if err != nil {
		return nil, usage(fmt.Errorf("--http: %w", err))
	}
	l.say("%s: probes at http://%s/", view.Name(l.name), listener.Addr())
	probes := http.NewServeMux()
	probes.Handle("/", election.Handler())
	probes.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := election.Check(l.lease); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Handler: probes, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	return func() {
		_ = server.Close()
		<-done
	}, nil
}
