// Connections that take no deadlines.

package conn_test

import (
	"context"
	"errors"
	"net"
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
	o.ReadTimeout, o.WriteTimeout = -2, -2
	dialBy(func(_ context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
		conn, err := dial()
		return undated{conn}, err
	})(o)
}

func TestAConnectionThatTakesNoDeadlines(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		held := make(chan struct{})
		defer close(held)
		b.proxy.OnCommand(func(redistest.Command) redistest.Fault { return redistest.HoldReply(held) })
		takes(t, 10*time.Second, func() { mustMatch(t, runFor(10*time.Second, b.Manager, newCount("k")), errs.Unavailable) })
		b.proxy.OnCommand(nil)
		mustRun(t, b.Manager, newCount("k")) // on a new connection

		sub, err := b.Dial(nodeOf(t, b.Manager, "k"))
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		heard := sub.Subscribe(t.Context(), "channel")
		defer heard.Close()
		if _, err := heard.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.server.Publish("channel", "message")
		if message, err := heard.ReceiveMessage(t.Context()); err != nil || message.Payload != "message" {
			t.Errorf("%v, %v", message, err)
		}
	}, throughATunnel)
}
