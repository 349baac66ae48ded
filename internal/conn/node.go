// How each server of a cluster is reached: with the options that go-redis makes for it, as
// changed by the user's NewClient.

package conn

import (
	"context"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
)

// node holds how one server is reached.
type node struct {
	options *redis.Options
	feed    *feed
}

// newNode is called by the table's client to make its nodes. Here their options can be seen.
func (c *cluster) newNode(o *redis.Options) *redis.Client {
	template := *o
	n := c.nodeFrom(o)
	c.mu.Lock()
	if c.template == nil {
		c.template = &template
	}
	c.nodes[n.options.Addr] = n
	c.mu.Unlock()
	options := *n.options
	options.Dialer = quiet(options.Dialer)
	return redis.NewClient(&options)
}

// nodeFrom returns how a server is reached, given the options that go-redis has made for it,
// after the user's NewClient has had its say. Only the options of the client that NewClient
// returns are used: everything that it sets is in them.
func (c *cluster) nodeFrom(o *redis.Options) node {
	made := c.userClient(o)
	options := *made.Options()
	_ = made.Close()
	return node{wireOptions(options, c.feeds), c.feeds.of(options.StreamingCredentialsProvider)}
}

// userClient returns a client made by the user's NewClient. If there is none, or if it returns
// nil, go-redis makes the client. If it panics, every dial of the client returns the panic as
// an error.
func (c *cluster) userClient(o *redis.Options) (made *redis.Client) {
	defer func() {
		if p := recover(); p != nil {
			o.Dialer = func(context.Context, string, string) (net.Conn, error) {
				return nil, fmt.Errorf("NewClient panicked: %v", p)
			}
			made = redis.NewClient(o)
		}
	}()
	if c.make != nil {
		if made = c.make(o); made != nil {
			return made
		}
	}
	return redis.NewClient(o)
}

// reached returns how the server at addr is reached.
func (c *cluster) reached(addr string) node {
	c.mu.Lock()
	n, ok := c.nodes[addr]
	template := *c.template
	c.mu.Unlock()
	if ok {
		return n
	}
	template.Addr, template.NodeAddress = addr, addr
	n = c.nodeFrom(&template)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[addr] = n
	return n
}
