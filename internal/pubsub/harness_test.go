// These tests share Redis servers in a bubble of virtual time, and a Source for them.

package pubsub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// redisServer is a miniredis that is reached by pipes. It has sharded pub/sub, and a log of the
// subscription commands and PINGs that it received.
type redisServer struct {
	*miniredis.Miniredis

	mu       sync.Mutex
	commands []string
	refuse   func(verb string, channels []string) string // returns an error reply, or ""
	peer     *server.Peer                                // the last peer that subscribed
	conns    []*faultyConn
	dial     func(ctx context.Context) (net.Conn, error) // used instead of the server, if set
	dials    int
}

func newRedisServer(t *testing.T) *redisServer {
	t.Helper()
	r := &redisServer{Miniredis: miniredis.NewMiniRedis()}
	r.ClockTTL(true)
	first, err := r.Miniredis.Dial() // starts the server
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	for sharded, plain := range map[string]string{"SSUBSCRIBE": "SUBSCRIBE", "SUNSUBSCRIBE": "UNSUBSCRIBE"} {
		err := r.Server().Register(sharded, func(p *server.Peer, _ string, args []string) {
			r.Server().Dispatch(p, append([]string{plain}, args...))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.Server().SetPreHook(func(p *server.Peer, verb string, channels ...string) bool {
		if !strings.HasSuffix(verb, "SUBSCRIBE") && verb != "PING" {
			return false
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.peer = p
		r.commands = append(r.commands, verb+" "+strings.Join(channels, " "))
		if r.refuse != nil && verb != "PING" {
			if reply := r.refuse(verb, channels); reply != "" {
				p.WriteError(reply)
				return true
			}
		}
		return false
	})
	return r
}

func (r *redisServer) setRefuse(f func(verb string, channels []string) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = f
}

func (r *redisServer) setDial(f func(context.Context) (net.Conn, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dial = f
}

func (r *redisServer) dialed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dials
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
	r.mu.Lock()
	peer := r.peer
	r.mu.Unlock()
	peer.Block(func(w *server.Writer) {
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

// last returns the newest connection.
func (r *redisServer) last() *faultyConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conns[len(r.conns)-1]
}

func (r *redisServer) connect(ctx context.Context) (net.Conn, error) {
	r.mu.Lock()
	r.dials++
	dial := r.dial
	r.mu.Unlock()
	if dial != nil {
		return dial(ctx)
	}
	conn, err := r.Dial()
	if err != nil {
		return nil, err
	}
	faulty := &faultyConn{Conn: conn}
	r.mu.Lock()
	r.conns = append(r.conns, faulty)
	r.mu.Unlock()
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

	mu    sync.Mutex
	home  func(ctx context.Context, channel string) (string, error)
	asked int
	moved []string
}

func (s *fakeSource) Home(ctx context.Context, channel string) (string, error) {
	s.mu.Lock()
	s.asked++
	home := s.home
	s.mu.Unlock()
	return home(ctx, channel)
}

func (s *fakeSource) setHome(f func(ctx context.Context, channel string) (string, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.home = f
}

func (s *fakeSource) askedHomes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = append(s.moved, home)
}

func (s *fakeSource) movedCalls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.moved)
}

func oneHome(context.Context, string) (string, error) { return "a", nil }

// inBubble runs test in virtual time on one classic server. Afterwards it checks that a closed
// Service leaves nothing behind.
func inBubble(t *testing.T, cfg Config, test func(t *testing.T, s *Service, r *redisServer, src *fakeSource)) {
	t.Helper()
	onServers(t, cfg, &fakeSource{home: oneHome}, func(t *testing.T, s *Service, a, _ *redisServer, src *fakeSource) { test(t, s, a, src) })
}

// inShardedBubble is inBubble with servers a and b and SSUBSCRIBE. Channels
// whose name starts with b live on b.
func inShardedBubble(t *testing.T, cfg Config, test func(t *testing.T, s *Service, a, b *redisServer, src *fakeSource)) {
	t.Helper()
	onServers(t, cfg, &fakeSource{sharded: true, home: func(_ context.Context, channel string) (string, error) {
		if strings.HasPrefix(channel, "b") {
			return "b", nil
		}
		return "a", nil
	}}, test)
}

func onServers(t *testing.T, cfg Config, src *fakeSource, test func(t *testing.T, s *Service, a, b *redisServer, src *fakeSource)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		a, b := newRedisServer(t), newRedisServer(t)
		defer a.Miniredis.Close()
		defer b.Miniredis.Close()
		src.servers = map[string]*redisServer{"a": a, "b": b}
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

// allJoined is joined for n channels, which have a common beginning.
func allJoined(t *testing.T, s *Service, beginning string, n int) (subs []*Subscription) {
	t.Helper()
	for i := range n {
		subs = append(subs, s.Subscribe(fmt.Sprint(beginning, i)))
	}
	for _, sub := range subs {
		mustSignal(t, sub, "on confirmation")
	}
	return subs
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

// recorder is a slog.Handler that keeps the messages at Warn and above.
type recorder struct {
	mu   sync.Mutex
	msgs []string
}

func (r *recorder) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler               { return r }
func (r *recorder) WithGroup(string) slog.Handler                    { return r }

func (r *recorder) Handle(_ context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.msgs = append(r.msgs, record.Message)
	return nil
}

func (r *recorder) count(part string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.msgs {
		if strings.Contains(m, part) {
			n++
		}
	}
	return n
}
