// Clients of go-redis that dial of their own accord, for subscriptions and for questions.

package server

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/dial"
)

// Client returns a client whose dials pass the gate. The caller must close it.
func (n *Node) Client() *redis.Client { return n.clientBy(n.pass) }

// ClientAtOnce returns a client whose dials do not pass the gate. The caller must close it.
func (n *Node) ClientAtOnce() *redis.Client { return n.clientBy(dial.Bounded(n.options.Dialer)) }

// pass dials when the gate allows it, for a connection on which no request is sent. If it succeeds
// after a failure, the next dial does not pause: it may be for requests, whose answers alone show
// that the server serves.
func (n *Node) pass(ctx context.Context, _, _ string) (net.Conn, error) {
	p, err := n.gate.enter(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := n.reachOut(ctx)
	n.gate.leave(p, err != nil && ctx.Err() == nil)
	if err == nil {
		n.gate.hurry()
	}
	return conn, err
}

func (n *Node) clientBy(by dial.Dialer) *redis.Client {
	options := *n.options
	options.ReadTimeout, options.WriteTimeout = n.gate.pace.patience(), n.gate.pace.patience()
	options.Dialer = dial.Unprinted(by)
	options.Protocol = 2 // with RESP3 go-redis looks for pushes, and prints what a full server says instead
	return redis.NewClient(&options)
}
