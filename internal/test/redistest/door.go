// A door decides how a FaultProxy receives new connections.

package redistest

import "net"

// Door is how a [FaultProxy] receives new connections.
type Door int

const (
	// Open: connections are served.
	Open Door = iota

	// Mute: connections are accepted, and nothing is ever sent on them, not even the TLS
	// handshake.
	Mute

	// Slam: connections are accepted and reset at once.
	Slam

	// Change: connections are reset as soon as the client has sent something, that is, amid the
	// handshake.
	Change

	// Full: connections are turned away, for example by a server that has too many clients.
	Full
)

// Receive sets how the proxy receives new connections. Present connections are not touched.
// Connections that a [Mute] door keeps stay when it opens, until the client closes them or
// [FaultProxy.Cut] does.
func (p *FaultProxy) Receive(d Door) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.door = d
}

// admit reports whether the connection must be served. If not, the connection has ended.
func (p *FaultProxy) admit(client net.Conn) bool {
	p.mu.Lock()
	door := p.door
	if door == Open || p.closed {
		p.mu.Unlock()
		return true // serve gets rid of a connection to a closed proxy
	}
	p.unserved[client] = true
	p.mu.Unlock()

	some := make([]byte, 4096)
	switch door {
	case Mute:
		for {
			if _, err := client.Read(some); err != nil {
				break
			}
		}
	case Change:
		client.Read(some)
		reset(client)
	case Slam:
		reset(client)
	case Full:
		if p.road.tls == nil { // a server sends this in plain text, or not at all
			client.Write([]byte("-ERR max number of clients reached\r\n"))
		}
	}
	p.mu.Lock()
	delete(p.unserved, client)
	p.mu.Unlock()
	client.Close()
	return false
}

// reset makes a TCP connection end with RST in place of FIN.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
}

// turnOut closes the connections that doors keep.
func (p *FaultProxy) turnOut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.unserved {
		c.Close()
	}
}
