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
	fails        int // how many subscriptions are to fail
}

func (s *stream) Subscribe(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
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
	redistest.Bubble(t, func(t *testing.T) {
		server := redistest.Mini(t)
		server.RequireAuth("first")
		proxy := server.Proxy()
		rdb := proxy.Client(t, func(o *redis.Options) { o.StreamingCredentialsProvider = s })
		m := newManager(t, rdb)
		b := &bubble{Manager: m, server: server, proxy: proxy}
		b.warm(t)
		b.occupy(t)() // so that all connections are open
		batch := func() {
			t.Helper()
			if err := renew(t.Context(), t, m); err != nil {
				t.Error(err)
			}
		}
		batch()

		synctest.Wait() // all connections are free again
		before := proxy.Conns()
		seen := record(proxy)
		server.RequireAuth("second")
		s.rotate("second")
		mustRun(t, m, newCount("k"))
		mustRun(t, m, newCount("k"))
		batch()
		if got, want := seen.String(), "AUTH EVALSHA EVALSHA AUTH EVALSHA"; got != want {
			t.Errorf("after a rotation were sent %q, want %q", got, want)
		}
		if now := proxy.Conns(); now != before {
			t.Errorf("%d connections, %d before the rotation", now, before)
		}

		s.rotate("of another server") // Redis refuses this password
		mustRun(t, m, newCount("k"))
		batch()

		s.rotate("second")
		proxy.Cut()
		mustRun(t, m, newCount("k"))
		m.Close()
		if s.subscribed != 1 || s.unsubscribed != 1 {
			t.Errorf("%d subscriptions, %d ended", s.subscribed, s.unsubscribed)
		}
	})
}

// stuck is a provider that never answers.
type stuck struct{ until chan struct{} }

func (s stuck) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	<-s.until
	return nil, nil, errors.New("too late")
}

func TestAStreamThatDoesNotComeHoldsNobodyUp(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		s := stuck{make(chan struct{})}
		defer close(s.until)
		m := newManager(t, redistest.Mini(t).Client(func(o *redis.Options) { o.StreamingCredentialsProvider = s }))
		c := startFor(300*time.Millisecond, m, newCount("k"))
		mustMatch(t, c.wait(t, 300*time.Millisecond+1), context.DeadlineExceeded)
		begun := time.Now()
		m.Close()
		if took := time.Since(begun); took != 0 {
			t.Errorf("Close took %v", took)
		}
	})
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
			began := time.Now()
			mustMatch(t, b.Run(t.Context(), c), want)
			if took := time.Since(began); took > 0 {
				t.Errorf("it was given up after %v", took)
			}
		}
		atOnce(newCount("k"), errs.Denied)

		undo := newCount("k")
		undo.Cleanup = true
		err := startFor(5*time.Second, b.Manager, undo).wait(t, 6*time.Second)
		for _, want := range []error{context.DeadlineExceeded, errs.Unavailable, errs.Denied} {
			mustMatch(t, err, want)
		}
		done := start(b.Manager, undo)
		time.Sleep(time.Minute)
		b.proxy.OnCommand(nil)
		if err := done.wait(t, 10*time.Second); err != nil {
			t.Error(err)
		}
		if n := b.executions(t, "k"); n != 1 {
			t.Errorf("%d executions, want 1", n)
		}

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
