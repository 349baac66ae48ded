// holdfast console: a web page of what is in Redis.

package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/console"
)

// serving is what the flags of console say.
type serving struct {
	listen, token, pattern string
	release                bool
}

func (a *app) console() *cobra.Command {
	var s serving
	cmd := &cobra.Command{
		Use:   "console [PATTERN]",
		Short: "Serve a web page of who holds what",
		Long: lines(
			"Serve a web page of what stands in Redis, at the names that match PATTERN: who holds each lock, who waits,",
			"what has happened, semaphores and latches, and what Check finds. Open the address that it prints. Other names",
			"are refused, to look at and to release.",
			"",
			"It only reads. With --allow-release it can also take a lock from its holder, as holdfast release --force",
			"does, once the name has been typed. For each release by force, each refusal and each wrong token it prints a",
			"line to standard error.",
			"",
			"It listens on this machine only. With --allow-release, or on another address, it requires a token, which it makes",
			"up and prints unless --token or $HOLDFAST_CONSOLE_TOKEN has it. It does not speak TLS: put a proxy before it",
			"that does.",
			"",
			"Nothing is asked of Redis while nobody looks. Otherwise, however many look, it asks for at most 500 names of the",
			"list a second, and rests for four fifths of the time; and it asks at most 20 times a second for each lock that is",
			"open on a page, of at most 8 locks."),
		Example: "  holdfast console\n  holdfast console 'orders:*' --allow-release\n  holdfast console --listen :7380",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				s.pattern = args[0]
			}
			s.token = cmp.Or(s.token, os.Getenv("HOLDFAST_CONSOLE_TOKEN"))
			if s.token != "" && len(s.token) < shortestToken {
				return usage(fmt.Errorf("a token has at least %d characters", shortestToken))
			}
			return a.lasting(cmd, func(ctx context.Context, client *holdfast.Client) error {
				return a.serve(ctx, client, s)
			})
		},
	}
	cmd.Flags().StringVar(&s.listen, "listen", "127.0.0.1:7380", "the address and port to serve the page on")
	cmd.Flags().StringVar(&s.token, "token", "", "what a viewer must give (default: made up with --allow-release or beyond this machine)")
	cmd.Flags().BoolVar(&s.release, "allow-release", false, "let viewers take locks from their holders")
	return cmd
}

// shortestToken is how many characters a token has at least.
const shortestToken = 16

// serve serves the page until a signal ends it.
func (a *app) serve(ctx context.Context, client *holdfast.Client, s serving) error {
	rdb, err := a.second()
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()
	l, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	address := l.Addr().(*net.TCPAddr)
	made := false
	if open := address.IP.IsLoopback() && !s.release; !open && s.token == "" { // other accounts reach the loopback too
		s.token, made = rand.Text(), true
	}
	o := console.Options{
		Client: client, Redis: rdb, Space: a.access.space(), Pattern: s.pattern, Patience: a.timeout, Target: a.at.String(),
		Token: s.token, AnyHost: s.token != "", Port: fmt.Sprint(address.Port),
		Say: func(line string) { a.say("%s", line) },
	}
	if s.release {
		o.Release = a.releaser(client)
	}
	handler := console.New(o)
	defer handler.Close()
	a.sayWhere(address, s.token, made, s.release)
	return serveUntil(ctx, l, handler)
}

// sayWhere prints the address of the page. Of a token it prints only one that was made up.
func (a *app) sayWhere(address *net.TCPAddr, token string, made, release bool) {
	at := url.URL{Scheme: "http", Host: address.String(), Path: "/"}
	if address.IP.IsUnspecified() {
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		at.Host = net.JoinHostPort(host, fmt.Sprint(address.Port))
	}
	if made {
		at.RawQuery = url.Values{"token": {token}}.Encode()
	}
	a.say("the console is at %s", at.String())
	switch {
	case made && release:
		a.say("whoever has that address may look, and release by force; it is printed this once")
	case made:
		a.say("whoever has that address may look; it is printed this once")
	}
}

// serveUntil serves until ctx ends.
func serveUntil(ctx context.Context, l net.Listener, h http.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler: h, ErrorLog: log.New(io.Discard, "", 0), BaseContext: func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 16,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_ = server.Close()
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return context.Cause(ctx)
}

// releaser returns what takes a name from its holders by force: what holdfast release --force does, with another
// way of asking first.
func (a *app) releaser(client *holdfast.Client) console.Release {
	return func(ctx context.Context, name, permit, viewer string, willTake func(console.Holders) error) (console.Holders, error) {
		i, err := a.see(ctx, client, name)
		if err != nil {
			return nil, err
		}
		from, err := takenFrom(i, permit)
		if err != nil || len(from) == 0 {
			return nil, err
		}
		if err := willTake(from); err != nil {
			return nil, err
		}
		held, err := seize(ctx, client, i, from)
		if err != nil || !held {
			return nil, err
		}
		where := fmt.Sprintf("holdfast console, pid %d, for a viewer at %s", os.Getpid(), viewer)
		a.noteForced(ctx, name, audit.Record{At: i.At.UTC(), By: a.operator(), Where: where}, from)
		return from, nil
	}
}
