// This file is about a Redis in this process, which can be stopped and started again.

package embedded

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Server is a Redis in this process. Its keys expire as time passes.
type Server struct {
	Redis *redis.Client // a client of this server

	mini *miniredis.Miniredis

	mu   sync.Mutex // guards addr
	addr string     // the address where it listens; "" while it is stopped
}

// Start starts n servers.
func Start(n int) ([]*Server, error) {
	logging.Disable() // go-redis would log each connection that a stopped server refuses
	var servers []*Server
	for range n {
		s := &Server{mini: miniredis.NewMiniRedis()}
		s.mini.ClockTTL(true) // otherwise no lease would ever run out
		if err := s.Restart(); err != nil {
			Close(servers)
			return nil, err
		}
		s.Redis = redis.NewClient(&redis.Options{Addr: s.addr, Dialer: s.dial})
		servers = append(servers, s)
	}
	return servers, nil
}

// Close ends servers, and their clients.
func Close(servers []*Server) {
	for _, s := range servers {
		_ = s.Redis.Close()
		s.Stop()
	}
}

// Stop stops the server. Its connections end, but its keys stay.
func (s *Server) Stop() {
	s.mu.Lock()
	s.addr = ""
	s.mu.Unlock()
	s.mini.Close()
}

// Restart starts the server again, with its keys.
func (s *Server) Restart() error {
	// The server takes any port, because another process may have taken the last port.
	if err := s.mini.StartAddr("127.0.0.1:0"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addr = s.mini.Addr()
	return nil
}

var errStopped = errors.New("the server is stopped")

// dial connects to where the server listens now.
func (s *Server) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	s.mu.Lock()
	addr := s.addr
	s.mu.Unlock()
	if addr == "" {
		return nil, errStopped
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}
