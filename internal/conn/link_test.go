// A caller is watched only once its answer is late, and that changes nothing else.

package conn_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// patience is how long an answer may take before its caller is watched.
const patience = 5 * time.Millisecond

// socketLike is a connection in memory that says that it is a socket, and notes how soon, at the least, a
// read was to give up. At the socket can be seen that the other end has closed it.
type socketLike struct {
	net.Conn
	soonest *atomic.Int64
	closed  *atomic.Bool
}

func likeSocket(c net.Conn) socketLike { return socketLike{c, new(atomic.Int64), new(atomic.Bool)} }

func (c socketLike) SyscallConn() (syscall.RawConn, error) { return seen{c.closed}, nil }

func (c socketLike) SetReadDeadline(at time.Time) error {
	if !at.IsZero() {
		c.soonest.Store(min(c.soonest.Load(), int64(time.Until(at))))
	}
	return c.Conn.SetReadDeadline(at)
}

// seen is a raw connection at which there is nothing to see but its end.
type seen struct{ closed *atomic.Bool }

func (seen) Control(func(uintptr)) error    { return nil }
func (seen) Write(func(uintptr) bool) error { return nil }

func (s seen) Read(func(uintptr) bool) error {
	if s.closed.Load() {
		return io.EOF
	}
	return nil
}

// onSockets runs test with connections that look like sockets, plain and below TLS.
func onSockets(t *testing.T, test func(t *testing.T, b *bubble, soonest *atomic.Int64)) {
	certificate := redistest.NewAuthority(t).Issue("server")
	for _, name := range []string{"TCP", "TLS"} {
		t.Run(name, func(t *testing.T) {
			soonest := new(atomic.Int64)
			inBubble(t, func(t *testing.T, b *bubble) {
				b.warm(t)
				synctest.Wait() // the connection is free again
				test(t, b, soonest)
			}, dialBy(func(_ context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
				c, err := dial()
				if err != nil || name == "TCP" {
					return socketLike{c, soonest, new(atomic.Bool)}, err
				}
				client, server := net.Pipe()
				secured := tls.Server(server, &tls.Config{Certificates: []tls.Certificate{certificate}})
				for _, way := range [][2]net.Conn{{c, secured}, {secured, c}} {
					go func() {
						_, _ = io.Copy(way[0], way[1])
						_, _ = c.Close(), server.Close()
					}()
				}
				return tls.Client(socketLike{client, soonest, new(atomic.Bool)}, &tls.Config{InsecureSkipVerify: true}), nil
			}))
		})
	}
}

// A late answer is heard all the same. A caller can leave a silent server before its answer is late and after.
func TestCallersAwaitAndLeaveALateServerOnASocket(t *testing.T) {
	onSockets(t, func(t *testing.T, b *bubble, _ *atomic.Int64) {
		before := b.dials.Load()
		for range 3 {
			b.proxy.OnCommand(onScripts(redistest.DelayReply(60 * time.Millisecond)))
			c := start(b.Manager, newCount("k"))
			redistest.Check(t, c.wait(t, 60*time.Millisecond+1))
			c.cancel()
			if _, unheard := c.Outstanding(); unheard || c.Attempts != 1 {
				t.Errorf("outstanding %v, %d attempts", unheard, c.Attempts)
			}
		}
		redistest.Equal(t, b.dials.Load()-before, 0, "connected %d times more")
		for _, after := range []time.Duration{0, patience - 1, patience + 1, 50 * time.Millisecond} {
			b.proxy.OnCommand(onScripts(redistest.Silence))
			begun, c := time.Now(), start(b.Manager, newCount("k"))
			synctest.Wait()
			time.Sleep(after)
			c.cancel()
			mustMatch(t, c.wait(t, time.Second), context.Canceled)
			if took, want := c.ended.Sub(begun), max(after, patience); took != want {
				t.Errorf("left after %v, and returned after %v, want %v", after, took, want)
			}
			b.proxy.OnCommand(nil)
			mustRun(t, b.Manager, newCount("k"))
			synctest.Wait()
		}
	})
}

// A timer that ends soon wakes a thread of an idle process, so renewals set none. A caller's request
// does, and is watched once it has waited that long.
func TestOnlyCallersGiveUpReadingSoon(t *testing.T) {
	onSockets(t, func(t *testing.T, b *bubble, soonest *atomic.Int64) {
		try := func(run func(ctx context.Context) error) time.Duration {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			soonest.Store(int64(time.Hour))
			redistest.Must(t, run(ctx))
			return time.Duration(soonest.Load())
		}
		renewal := func(ctx context.Context) error { return renew(t, time.Hour, b.Manager) }
		for range 2 { // the first goes on a caller's connection; theirs has answered nothing before the second
			try(renewal)
			synctest.Wait()
		}
		if d := try(renewal); d < 20*patience {
			t.Errorf("a renewal gives up reading after %v", d)
		}
		if d := try(func(ctx context.Context) error { return b.Run(ctx, newCount("k")) }); d != patience {
			t.Errorf("a caller's request gives up reading after %v", d)
		}
	})
}
