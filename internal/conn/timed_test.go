// Connections that take no deadlines, and connections that may not be used for long.

package conn_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// undated is a connection through an SSH tunnel, as golang.org/x/crypto/ssh makes it.
type undated struct{ net.Conn }

var errUndated = errors.New("ssh: tcpChan: deadline not supported")

func (undated) SetDeadline(time.Time) error      { return errUndated }
func (undated) SetReadDeadline(time.Time) error  { return errUndated }
func (undated) SetWriteDeadline(time.Time) error { return errUndated }

// throughATunnel makes the client's connections undated.
func throughATunnel(o *redis.Options) {
	dial := o.Dialer
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	o.ReadTimeout, o.WriteTimeout = -2, -2
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return undated{conn}, err
	}
}

func TestAConnectionThatTakesNoDeadlines(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		held := make(chan struct{})
		defer close(held)
		b.proxy.OnCommand(func(redistest.Command) redistest.Fault { return redistest.HoldReply(held) })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begun := time.Now()
		err := b.Run(ctx, newCount("k"))
		if !errors.Is(err, errs.Unavailable) || time.Since(begun) != 10*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		b.proxy.OnCommand(nil)
		mustRun(t, b.Manager, newCount("k")) // on a new connection
	}, throughATunnel)
}

func TestAServerIsHeardOfThroughATunnel(t *testing.T) {
	rdb := redistest.Server(t).Client(t, throughATunnel)
	m := newManager(t, rdb)
	mustRun(t, m, newCount("k"))
	sub, err := m.Dial(rdb.Options().Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	heard := sub.Subscribe(t.Context(), "channel")
	defer heard.Close()
	if _, err := heard.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	rdb.Publish(t.Context(), "channel", "message")
	if message, err := heard.ReceiveMessage(t.Context()); err != nil || message.Payload != "message" {
		t.Errorf("%v, %v", message, err)
	}
}

// A lifetime without its unit, 30 for 30 s, must not have the server dialled without end.
func TestALifetimeThatIsOverAtOnce(t *testing.T) {
	var dials atomic.Int32
	inBubble(t, func(t *testing.T, b *bubble) {
		for range 60 {
			mustRun(t, b.Manager, newCount("k"))
			time.Sleep(time.Second)
		}
		if n := dials.Load(); n > 7 {
			t.Errorf("%d dials in a minute", n)
		}
	}, func(o *redis.Options) {
		o.ConnMaxLifetime = 30
		dial := o.Dialer
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return dial(ctx, network, addr)
		}
	})
}
