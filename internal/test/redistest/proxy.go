// A proxy between client and server that loses, delays, halves or doubles exactly the command
// that a rule picks.

package redistest

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// FaultProxy forwards RESP in both directions, command by command, so that a fault applies to
// one command and its reply, in pipelines too. Its methods may be called from any goroutine. It
// does not support CLIENT REPLY, MONITOR and SYNC, whose replies do not follow their commands
// one by one.
type FaultProxy struct {
	t        testing.TB
	upstream func() (net.Conn, error)
	road     road
	addr     string         // empty when there is no socket
	done     chan struct{}  // closed when the proxy closes
	wg       sync.WaitGroup // accept loops and links

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused, or without a socket
	refusing bool
	closed   bool
	door     Door
	rule     func(Command) Fault
	links    map[int64]*link
	unserved map[net.Conn]bool // connections that a door keeps
	conns    int64
	cuts     int
	commands int64
	counts   map[string]int

	trickles atomic.Bool
}

// Proxy starts a proxy on a loopback port in front of upstreamAddr. It closes with all its
// connections when t ends. If a connection cannot be made upstream, the client's connection is
// closed. ways set how clients reach the proxy; the default is plain TCP on 127.0.0.1.
func Proxy(t testing.TB, upstreamAddr string, ways ...Way) *FaultProxy {
	t.Helper()
	p := newProxy(t, func() (net.Conn, error) {
		return net.DialTimeout("tcp", upstreamAddr, 10*time.Second)
	})
	p.road.host = "127.0.0.1"
	for _, way := range ways {
		way(&p.road)
	}
	for range 20 { // another process may take the port between the check and the bind
		p.addr = net.JoinHostPort(p.road.host, strconv.Itoa(freePort(t, false)))
		if p.listen() == nil {
			return p
		}
	}
	t.Fatalf("redistest: the proxy finds no port")
	return nil
}

func newProxy(t testing.TB, upstream func() (net.Conn, error)) *FaultProxy {
	p := &FaultProxy{
		t:        t,
		upstream: upstream,
		done:     make(chan struct{}),
		links:    map[int64]*link{},
		unserved: map[net.Conn]bool{},
		counts:   map[string]int{},
	}
	t.Cleanup(p.close)
	return p
}

// Addr returns the proxy's host:port. It is empty for the proxy of a [MiniServer].
func (p *FaultProxy) Addr() string { return p.addr }

// Dial connects to the proxy in memory, whether or not it has a socket. It is a
// redis.Options.Dialer; network and address are ignored.
func (p *FaultProxy) Dial(context.Context, string, string) (net.Conn, error) {
	client, server := memPipe()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusing || p.closed {
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: syscall.ECONNREFUSED}
	}
	cuts := p.cuts
	p.wg.Go(func() { p.serve(server, cuts) })
	return client, nil
}

// Client returns a new client that goes through the proxy, as [Proc.Client].
func (p *FaultProxy) Client(t testing.TB, opts ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: p.addr}
	if p.addr == "" {
		o.Dialer = p.Dial
	}
	return newClient(t, o, opts)
}

// OnCommand sets the rule that decides about each command, in place of the one
// before; nil lets everything pass. The rule is called once per command, in
// each connection's order, concurrently for different connections. Connections
// open with commands of their own (HELLO, CLIENT SETINFO), so rules go by
// name, not only by number.
func (p *FaultProxy) OnCommand(rule func(Command) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule
}

// BlackHole makes all present connections silent in both directions. They stay open, and
// nothing that is sent on them arrives, not even the client's closing. New connections are
// served.
func (p *FaultProxy) BlackHole() {
	for _, l := range p.open() {
		l.silent.Store(true)
		l.hole.Store(true)
	}
}

// Cut closes all present connections. New ones are served.
func (p *FaultProxy) Cut() {
	p.mu.Lock()
	p.cuts++
	p.mu.Unlock()
	for _, l := range p.open() {
		l.close()
	}
	p.turnOut()
}

// Trickle makes the proxy send replies one byte at a time, or whole again.
func (p *FaultProxy) Trickle(on bool) { p.trickles.Store(on) }

// Refuse makes new connections fail with "connection refused", or accepts them
// again. Present connections are not touched.
func (p *FaultProxy) Refuse(on bool) {
	p.mu.Lock()
	p.refusing = on
	listener := p.listener
	if on {
		p.listener = nil
	}
	p.mu.Unlock()
	if on && listener != nil {
		listener.Close()
	}
	if !on && listener == nil && p.addr != "" {
		if err := poll(patience, p.listen); err != nil {
			p.t.Errorf("redistest: the proxy cannot listen again: %v", err)
		}
	}
}

// Count returns how many commands called name have arrived, whatever happened to them.
func (p *FaultProxy) Count(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[strings.ToUpper(name)]
}

// Conns returns how many connections are open now.
func (p *FaultProxy) Conns() int { return len(p.open()) }

func (p *FaultProxy) open() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for _, l := range p.links {
		links = append(links, l)
	}
	return links
}

func (p *FaultProxy) listen() error {
	listener, err := net.Listen("tcp", p.addr)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return listener.Close()
	}
	p.listener = listener
	p.wg.Go(func() { p.accept(listener) })
	return nil
}

// accept ends when its listener is closed.
func (p *FaultProxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client was gone before it was accepted
		}
		p.mu.Lock()
		cuts := p.cuts
		p.mu.Unlock()
		p.wg.Go(func() { p.serve(client, cuts) })
	}
}

// serve runs one connection to its end. cuts is how many times the proxy had cut its connections before this one came.
func (p *FaultProxy) serve(client net.Conn, cuts int) {
	if !p.admit(client) {
		return
	}
	server, err := p.upstream()
	if err != nil {
		client.Close()
		return
	}
	client, server = p.road.ends(client, server)
	l := &link{proxy: p, client: client, server: server, channels: map[string]map[string]bool{}}
	if !p.add(l, cuts) {
		l.close()
		return
	}
	l.run()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l.id)
}

// add reports whether the connection is still wanted: a Cut ends it even if it comes before the connection is served.
func (p *FaultProxy) add(l *link, cuts int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.cuts != cuts {
		return false
	}
	p.conns++
	l.id = p.conns
	p.links[l.id] = l
	return true
}

// decide counts the command and calls the rule, outside the mutex.
func (p *FaultProxy) decide(conn int64, name string, args []string) plan {
	p.mu.Lock()
	p.commands++
	p.counts[name]++
	c := Command{Conn: conn, N: p.commands, Name: name, Args: args}
	rule := p.rule
	p.mu.Unlock()
	if rule == nil {
		return plan{}
	}
	fault := rule(c)
	if fault == nil || fault == Fault(Pass) {
		return plan{}
	}
	return fault.plan()
}

func (p *FaultProxy) close() {
	p.mu.Lock()
	p.closed = true
	listener := p.listener
	p.listener = nil
	p.mu.Unlock()
	close(p.done) // before the links close: it releases the links that hold a command
	if listener != nil {
		listener.Close()
	}
	p.Cut()
	p.wg.Wait()
}
