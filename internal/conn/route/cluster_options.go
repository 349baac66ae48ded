// How each server of a cluster is reached: with the options that go-redis makes for it, as
// changed by the user's NewClient.

package route

import (
	"context"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/dial"
	"github.com/holdfast-go/holdfast/internal/conn/server"
)

// nodeOptions holds how one server is reached.
type nodeOptions struct {
	options *redis.Options
	feed    *dial.Feed
	table   *server.Pace // of questions about the table: go-redis makes the client for them anew
}

// nodeClient is the NewClient of the table's client, which calls it for each server that the
// table names. Here the options of these servers can be seen.
func (c *cluster) nodeClient(o *redis.Options) *redis.Client {
	template := *o
	its := c.optionsFrom(o)
	c.mu.Lock()
	if c.template == nil {
		c.template = &template
	}
	if before := c.options[its.options.Addr].table; before != nil {
		its.table = before
	}
	c.options[its.options.Addr] = its
	c.mu.Unlock()
	options := *its.options
	options.Dialer = dial.Unprinted(server.Unhurried(its.table, dial.Bounded(options.Dialer)))
	return redis.NewClient(&options)
}

// optionsFrom returns how a server is reached, given the options that go-redis has made for it,
// after the user's NewClient has had its say. Only the options of the client that NewClient
// returns are used: everything that it sets is in them.
func (c *cluster) optionsFrom(o *redis.Options) nodeOptions {
	made := c.userClient(o)
	options := *made.Options()
	_ = made.Close()
	its := nodeOptions{options: server.Options(options, c.feeds), feed: c.feeds.Of(options.StreamingCredentialsProvider)}
	its.table = server.NewPace(its.options.ReadTimeout)
	return its
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

// optionsFor returns how the server at addr is reached.
func (c *cluster) optionsFor(addr string) nodeOptions {
	c.mu.Lock()
	its, ok := c.options[addr]
	template := *c.template
	c.mu.Unlock()
	if ok {
		return its
	}
	template.Addr, template.NodeAddress = addr, addr
	its = c.optionsFrom(&template)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.options[addr] = its
	return its
}
