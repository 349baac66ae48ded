// What becomes of new connections to a FaultProxy.

package redistest

import "net"

// Door is how a [FaultProxy] receives new connections.
type Door int

const (
	// Open: they are served.
	Open Door = iota

	// Mute: they are accepted, and nothing is ever said on them, the handshake of TLS
	// neither.
	Mute

	// Slam: they are accepted and reset at once.
	Slam

	// Change: they are reset as soon as the client has said something: amid the handshake.
	Change

	// Full: they are turned away as by a server that has too many clients.
	Full
)

// Receive has the proxy receive new connections so. Present ones are not touched.
// Those that a [Mute] door keeps stay when it opens, until the client closes them or
// [FaultProxy.Cut].
func (p *FaultProxy) Receive(d Door) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.door = d
}

// admit says whether the connection is to be served. If not, it has ended.
func (p *FaultProxy) admit(client net.Conn) bool {
	p.mu.Lock()
	door := p.door
	if door == Open || p.closed {
		p.mu.Unlock()
		return true // of a closed proxy serve gets rid
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
		if p.road.tls == nil { // a server says it in plain text, or not at all
			client.Write([]byte("-ERR max number of clients reached\r\n"))
		}
	}
	p.mu.Lock()
	delete(p.unserved, client)
	p.mu.Unlock()
	client.Close()
	return false
}

// reset has the connection end with RST in place of FIN, where it is one of TCP.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
}

// turnOut closes what doors keep.
func (p *FaultProxy) turnOut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.unserved {
		c.Close()
	}
}

func (p *FaultProxy) trickling() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trickles
}
