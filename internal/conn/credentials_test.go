// A Manager subscribes to streamed credentials once, and handles its open connections when new
// credentials come.

package conn_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// stream is a provider that hands out the credentials that a test sets.
type stream struct {
	mu           sync.Mutex
	username     string
	password     string
	listeners    []auth.CredentialsListener
	subscribed   int
	unsubscribed int
	fails        int          // how many subscriptions are to fail
	do           func() error // if there is one, each subscription returns its error
}

func (s *stream) Subscribe(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	if s.do != nil {
		return nil, nil, s.do()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails > 0 {
		s.fails--
		return nil, nil, errors.New("the identity provider is down")
	}
	s.subscribed++
	s.listeners = append(s.listeners, l)
	return auth.NewBasicCredentials(s.username, s.password), func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unsubscribed++
		return nil
	}, nil
}

// rotate sets another password and hands it out.
func (s *stream) rotate(password string) {
	s.mu.Lock()
	s.password = password
	username, listeners := s.username, slices.Clone(s.listeners)
	s.mu.Unlock()
	for _, l := range listeners {
		l.OnNext(auth.NewBasicCredentials(username, password))
	}
}

func TestStreamedCredentialsComeByOneSubscription(t *testing.T) {
	s := &stream{username: "default", password: "first", fails: 1}
	inBubble(t, func(t *testing.T, b *bubble) {
		b.server.RequireAuth("first")
		b.warm(t)
		b.occupy(t)() // so that all connections are open
		redistest.Check(t, renew(t, time.Hour, b.Manager))

		synctest.Wait() // all connections are free again
		before := b.proxy.Conns()
		seen := record(b.proxy)
		b.server.RequireAuth("second")
		s.rotate("second")
		mustRun(t, b.Manager, newCount("k"))
		mustRun(t, b.Manager, newCount("k"))
		redistest.Check(t, renew(t, time.Hour, b.Manager))
		if got, want := seen.String(), "AUTH EVALSHA EVALSHA AUTH EVALSHA"; got != want {
			t.Errorf("after a rotation were sent %q, want %q", got, want)
		}
		redistest.Equal(t, b.proxy.Conns(), before, "%d connections, %d before the rotation", before)

		s.rotate("of another server") // Redis refuses this password
		mustRun(t, b.Manager, newCount("k"))
		redistest.Check(t, renew(t, time.Hour, b.Manager))

		s.rotate("second")
		b.proxy.Cut()
		mustRun(t, b.Manager, newCount("k"))
		b.Close()
		if s.subscribed != 1 || s.unsubscribed != 1 {
			t.Errorf("%d subscriptions, %d ended", s.subscribed, s.unsubscribed)
		}
	}, func(o *redis.Options) { o.StreamingCredentialsProvider = s })
}

// Calls, renewals and subscriptions have the user's credentials, in whatever form they come.
func TestOptionsCredentialsInEveryForm(t *testing.T) {
	for name, set := range map[string]func(o *redis.Options){
		"static":   func(o *redis.Options) { o.Username, o.Password = "app", "first" },
		"provider": func(o *redis.Options) { o.CredentialsProvider = func() (string, string) { return "app", "first" } },
		"context": func(o *redis.Options) {
			o.CredentialsProviderContext = func(context.Context) (string, string, error) { return "app", "first", nil }
		},
		"stream": func(o *redis.Options) { o.StreamingCredentialsProvider = &stream{username: "app", password: "first"} },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.server.RequireUserAuth("app", "first")
				b.warm(t)
				client, err := b.Dial(nodeOf(t, b.Manager, "k"))
				redistest.Must(t, err)
				defer client.Close()
				redistest.Check(t, errors.Join(renew(t, time.Hour, b.Manager), client.Ping(t.Context()).Err()))
			}, set)
		})
	}
}

// While the server refuses the credentials, no new call is begun, and a clean-up waits for the
// right credentials. It does not wait for what no operator can mend.
func TestACleanUpOutlastsRefusedCredentials(t *testing.T) {
	gone := false
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		b.proxy.OnCommand(func(redistest.Command) redistest.Fault {
			return redistest.ReplyError("WRONGPASS invalid username-password pair or user is disabled.")
		})
		b.proxy.Cut()
		atOnce := func(c *conn.Call, want error) {
			t.Helper()
			takes(t, 0, func() { mustMatch(t, runFor(time.Hour, b.Manager, c), want) })
		}
		atOnce(newCount("k"), errs.Denied)

		undo := newCount("k")
		undo.Cleanup = true
		err := runFor(5*time.Second, b.Manager, undo)
		for _, want := range []error{context.DeadlineExceeded, errs.Unavailable, errs.Denied} {
			mustMatch(t, err, want)
		}
		done := start(b.Manager, undo)
		time.Sleep(time.Minute)
		b.proxy.OnCommand(nil)
		served(t, 10*time.Second, done)
		redistest.Equal(t, b.executions(t, "k"), 1, "%d executions, want 1")
		synctest.Wait() // until the gate knows that the server serves again: then it lets the next dial go at once

		gone = true
		b.proxy.Cut()
		atOnce(undo, redis.ErrClosed)
	}, dialBy(func(_ context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
		if gone {
			return nil, redis.ErrClosed
		}
		return dial()
	}))
}
