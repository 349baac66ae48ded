// These tests share Redis servers in a bubble of virtual time, and a Source for them.

package pubsub

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// guarded is a value that the test sets while others read it.
type guarded[T any] struct {
	mu sync.Mutex
	v  T
}

func (g *guarded[T]) set(v T) { g.change(func(T) T { return v }) }
func (g *guarded[T]) get() T  { return g.change(func(v T) T { return v }) }

// change replaces the value, and returns the new one.
func (g *guarded[T]) change(f func(T) T) T {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.v = f(g.v)
	return g.v
}

// redisServer is an embedded server that is reached by pipes. It has a log of the subscription commands and
// PINGs that it received.
type redisServer struct {
	*miniredis.Miniredis

	mu       sync.Mutex // held while a command is noted
	commands []string
	refuse   guarded[func(verb string, channels []string) string] // returns an error reply, or ""
	peer     guarded[*server.Peer]                                // the last peer that subscribed
	last     guarded[*faultyConn]                                 // the newest connection
	dial     guarded[func(context.Context) (net.Conn, error)]     // used instead of the server, if set
	dials    atomic.Int32
}

func newRedisServer(t *testing.T) *redisServer {
	t.Helper()
	r := &redisServer{Miniredis: redistest.Mini(t).Miniredis}
	r.Server().SetPreHook(func(p *server.Peer, verb string, channels ...string) bool {
		if !strings.HasSuffix(verb, "SUBSCRIBE") && verb != "PING" {
			return false
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.peer.set(p)
		r.commands = append(r.commands, verb+" "+strings.Join(channels, " "))
		if refuse := r.refuse.get(); refuse != nil && verb != "PING" {
			if reply := refuse(verb, channels); reply != "" {
				p.WriteError(reply)
				return true
			}
		}
		return false
	})
	return r
}

// got returns the commands with that verb, and forgets all commands.
func (r *redisServer) got(verb string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.commands
	r.commands = nil
	return slices.DeleteFunc(all, func(c string) bool { return !strings.HasPrefix(c, verb+" ") })
}

// inject sends the last subscriber a reply that it has not asked for.
func (r *redisServer) inject(write func(w *server.Writer)) {
	r.peer.get().Block(func(w *server.Writer) {
		write(w)
		w.Flush()
	})
}

func pushFrame(kind, channel string) func(w *server.Writer) {
	return func(w *server.Writer) {
		w.WritePushLen(3)
		w.WriteBulk(kind)
		w.WriteBulk(channel)
		w.WriteInt(0)
	}
}

// pings returns how many PINGs arrived, and forgets all commands.
func (r *redisServer) pings() int { return len(r.got("PING")) }

func (r *redisServer) connect(ctx context.Context) (net.Conn, error) {
	r.dials.Add(1)
	if dial := r.dial.get(); dial != nil {
		return dial(ctx)
	}
	conn, err := r.Dial()
	if err != nil {
		return nil, err
	}
	faulty := &faultyConn{Conn: conn}
	r.last.set(faulty)
	return faulty, nil
}

// faultyConn can become a black hole: writes succeed, and nothing comes back.
type faultyConn struct {
	net.Conn
	blackHole atomic.Bool
}

func (c *faultyConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.blackHole.Load() {
			return n, err
		}
	}
}

// fakeSource is a Source over redisServers, which it finds by name.
type fakeSource struct {
	servers map[string]*redisServer
	sharded bool
	home    guarded[func(ctx context.Context, channel string) (string, error)]
	asked   atomic.Int32 // for homes
	moved   guarded[[]string]
}

func (s *fakeSource) Home(ctx context.Context, channel string) (string, error) {
	s.asked.Add(1)
	return s.home.get()(ctx, channel)
}

func (s *fakeSource) Sharded(context.Context) (bool, error) { return s.sharded, nil }

func (s *fakeSource) Dial(home string) (*redis.Client, error) {
	r := s.servers[home]
	if r == nil {
		return nil, errors.New("no such server")
	}
	return redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:6379", // go-redis looks a host name up, which a bubble does not allow
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return r.connect(ctx) },
	}), nil
}

func (s *fakeSource) Moved(home string) {
	s.moved.change(func(all []string) []string { return append(slices.Clone(all), home) })
}

func oneHome(context.Context, string) (string, error) { return "a", nil }

// inBubble runs test in virtual time on one classic server. Afterwards it checks that a closed
// Service leaves nothing behind.
func inBubble(t *testing.T, cfg Config, test func(t *testing.T, s *Service, r *redisServer, src *fakeSource)) {
	t.Helper()
	onServers(t, cfg, false, oneHome, func(t *testing.T, s *Service, a, _ *redisServer, src *fakeSource) { test(t, s, a, src) })
}

// inShardedBubble is inBubble with servers a and b and SSUBSCRIBE. Channels
// whose name starts with b live on b.
func inShardedBubble(t *testing.T, cfg Config, test func(t *testing.T, s *Service, a, b *redisServer, src *fakeSource)) {
	t.Helper()
	onServers(t, cfg, true, func(_ context.Context, channel string) (string, error) {
		if strings.HasPrefix(channel, "b") {
			return "b", nil
		}
		return "a", nil
	}, test)
}

func onServers(t *testing.T, cfg Config, sharded bool, home func(context.Context, string) (string, error),
	test func(t *testing.T, s *Service, a, b *redisServer, src *fakeSource)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		a, b := newRedisServer(t), newRedisServer(t)
		src := &fakeSource{servers: map[string]*redisServer{"a": a, "b": b}, sharded: sharded}
		src.home.set(home)
		s := New(src, cfg)
		defer s.Close()
		test(t, s, a, b, src)
	})
}

// joined subscribes to a channel, and waits until it is confirmed.
func joined(t *testing.T, s *Service, channel string) *Subscription {
	t.Helper()
	sub := s.Subscribe(channel)
	mustSignal(t, sub, "on confirmation")
	return sub
}

// signalled reports whether sub has a wake-up once all goroutines are idle, and takes that wake-up.
func signalled(sub *Subscription) bool {
	synctest.Wait()
	select {
	case <-sub.C():
		return true
	default:
		return false
	}
}

func mustSignal(t *testing.T, sub *Subscription, why string) {
	t.Helper()
	if !signalled(sub) {
		t.Fatalf("not signalled: %s", why)
	}
}

func mustNotSignal(t *testing.T, sub *Subscription, why string) {
	t.Helper()
	if signalled(sub) {
		t.Fatalf("signalled: %s", why)
	}
}

// signalledWithin returns the virtual time after which sub was signalled.
func signalledWithin(t *testing.T, sub *Subscription, limit time.Duration) time.Duration {
	t.Helper()
	start := time.Now()
	select {
	case <-sub.C():
	case <-time.After(limit):
		t.Fatalf("not signalled within %v", limit)
	}
	return time.Since(start)
}

// allSignalled is signalledWithin for each of them.
func allSignalled(t *testing.T, subs []*Subscription, limit time.Duration) {
	t.Helper()
	for _, sub := range subs {
		signalledWithin(t, sub, limit)
	}
}

// wantChannels fails t unless just those channels are subscribed to.
func wantChannels(t *testing.T, r *redisServer, when string, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := r.PubSubChannels(""); !slices.Equal(got, want) {
		t.Fatalf("%s: PUBSUB CHANNELS = %q, want %q", when, got, want)
	}
}
