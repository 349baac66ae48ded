// The server, and the clients that are processes of a test.

package holdfasttest

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Server is a Redis server in memory. Several goroutines may call its methods at the same time, except
// the methods that can fail the test: Client, Redis, Addr, HoldElsewhere, Lose, CheckExclusive, and the
// methods whose names begin with Require. Call those methods only on the test's own goroutine.
type Server struct {
	t        testing.TB
	mini     *redistest.MiniServer
	network  network
	history  history
	operator *holdfast.Client // looks on, and is "elsewhere"; its own network is never disturbed
}

// New starts a Server. When the test ends, the Clients of the Server are closed first, and then the
// Server stops. If New is called inside a synctest bubble, the Server runs inside the bubble, and uses
// the bubble's clock.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, mini: redistest.Mini(t)}
	s.history.of = s.mini
	s.mini.Before(s.history.note)
	s.operator = holdfast.New(s.mini.Client())
	t.Cleanup(func() { _ = s.operator.Close() })
	return s
}

// Client returns a Client of the server. Each Client stands for one process in the test, and has its own
// connections to the server. The Client is closed when the test ends, or the synctest bubble of the
// test.
func (s *Server) Client(options ...holdfast.Option) *holdfast.Client {
	s.t.Helper()
	return s.process(s.network.join(s.mini.Proxy()), options...)
}

// process returns a Client with that way to the server.
func (s *Server) process(way *redistest.FaultProxy, options ...holdfast.Option) *holdfast.Client {
	s.t.Helper()
	c := holdfast.New(way.Client(s.t), options...)
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Redis returns a go-redis client of the server, for commands that a program sends to Redis without
// Holdfast. The faults of the network that the test chooses meet this client as they meet the Clients.
func (s *Server) Redis() *redis.Client {
	s.t.Helper()
	return s.network.join(s.mini.Proxy()).Client(s.t)
}

// Addr returns an address of the server on the loopback interface. Use it for a program to which the
// test cannot give a Client or a dialer. The faults of the network that the test chooses meet a
// connection to this address as they meet the Clients. A synctest bubble cannot wait for a connection to
// this address.
func (s *Server) Addr() string {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatalf("holdfasttest: %v", err)
	}
	proxy := s.network.join(s.mini.Proxy())
	var bridges sync.WaitGroup
	bridges.Go(func() {
		for {
			outer, err := listener.Accept()
			if err != nil {
				return
			}
			inner, err := proxy.Dial(context.Background(), "", "")
			if err != nil {
				_ = outer.Close()
				continue
			}
			bridge(&bridges, outer, inner)
			bridge(&bridges, inner, outer)
		}
	})
	s.t.Cleanup(func() {
		_ = listener.Close()
		proxy.Cut()
		bridges.Wait()
	})
	return listener.Addr().String()
}
