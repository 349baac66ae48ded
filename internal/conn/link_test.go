// A caller is watched only once its answer is late, and that changes nothing else.

package conn_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// onSockets runs test on a real server, over TCP and over TLS. dials counts how often the Manager
// connects.
func onSockets(t *testing.T, test func(t *testing.T, server *redistest.Proc, m *conn.Manager, dials *atomic.Int32)) {
	for _, name := range []string{"TCP", "TLS"} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Server(t)
			var dials atomic.Int32
			m := newManager(t, server.Client(t, func(o *redis.Options) {
				addr := o.Addr
				dial := func(ctx context.Context) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "tcp", addr)
				}
				if name == "TLS" {
					addr = terminateTLS(t, addr)
					dial = func(ctx context.Context) (net.Conn, error) {
						return (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", addr)
					}
				}
				o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
					dials.Add(1)
					return dial(ctx)
				}
			}))
			mustRun(t, m, newCount("k"))
			test(t, server, m, &dials)
		})
	}
}

// terminateTLS listens with TLS, passes what it receives on to addr, and returns its address.
func terminateTLS(t *testing.T, addr string) string {
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { listener.Close() })
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				client.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
				all.Go(func() {
					_, _ = io.Copy(way[0], way[1])
					way[0].Close()
					way[1].Close()
				})
			}
		}
	})
	return listener.Addr().String()
}

func TestLateAnswerIsHeardAllTheSame(t *testing.T) {
	onSockets(t, func(t *testing.T, server *redistest.Proc, m *conn.Manager, dials *atomic.Int32) {
		before := dials.Load()
		for range 3 {
			if err := server.Admin().ClientPause(t.Context(), 60*time.Millisecond).Err(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			c := newCount("k")
			if err := m.Run(ctx, c); err != nil {
				t.Error(err)
			}
			cancel()
			if _, unheard := c.Outstanding(); unheard || c.Attempts != 1 {
				t.Errorf("outstanding %v, %d attempts", unheard, c.Attempts)
			}
		}
		if again := dials.Load() - before; again != 0 {
			t.Errorf("connected %d times more", again)
		}
	})
}

// A caller can leave a silent server before its answer is late and after.
func TestCallerLeavesASilentServerOnASocket(t *testing.T) {
	onSockets(t, func(t *testing.T, server *redistest.Proc, m *conn.Manager, _ *atomic.Int32) {
		pulse := redistest.FeelPulse(t)
		for _, after := range []time.Duration{0, 50 * time.Millisecond} {
			server.Freeze()
			c := start(m, newCount("k"))
			time.Sleep(after)
			cancelled := time.Now()
			c.cancel()
			mustMatch(t, c.soon(t, pulse, cancelled), context.Canceled)
			server.Thaw()
			mustRun(t, m, newCount("k"))
		}
	})
}

// hurry notes how soon, at the least, a read was to give up.
type hurry struct{ least atomic.Int64 }

func (h *hurry) note(d time.Duration) {
	for least := h.least.Load(); int64(d) < least && !h.least.CompareAndSwap(least, int64(d)); {
		least = h.least.Load()
	}
}

// during returns what was noted while do ran.
func (h *hurry) during(do func()) time.Duration {
	h.least.Store(int64(time.Hour))
	do()
	return time.Duration(h.least.Load())
}

// hurried is a TCP connection whose read deadlines are noted.
type hurried struct {
	*net.TCPConn
	noted *hurry
}

func (c hurried) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		c.noted.note(time.Until(t))
	}
	return c.TCPConn.SetReadDeadline(t)
}

// A timer that ends soon wakes a thread of an idle process, so renewals set none. A caller's request
// does, and is watched once it has waited that long.
func TestOnlyCallersGiveUpReadingSoon(t *testing.T) {
	const soon = 100 * time.Millisecond
	var noted hurry
	m := newManager(t, redistest.Server(t).Client(t, func(o *redis.Options) {
		addr := o.Addr
		o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return hurried{c.(*net.TCPConn), &noted}, nil
		}
	}))
	mustRun(t, m, newCount("k"))
	node := nodeOf(t, m, "k")
	renew := func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if outcomes := runBatch(ctx, t, m, node, []*conn.Call{newCount("k")}); outcomes[0] != nil {
			t.Fatal(outcomes[0])
		}
	}
	renew() // makes the connection
	if d := noted.during(renew); d < soon {
		t.Errorf("a renewal gives up reading after %v", d)
	}
	if d := noted.during(func() { mustRun(t, m, newCount("k")) }); d > soon {
		t.Errorf("a caller's request gives up reading after %v only", d)
	}
}
