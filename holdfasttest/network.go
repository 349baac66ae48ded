// The network between the processes of a test and the server, and what may go wrong with it.

package holdfasttest

import (
	"io"
	"net"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// network is all ways to the server, except the operator's.
type network struct {
	mu      sync.Mutex // guards what follows
	ways    []*redistest.FaultProxy
	down    bool
	replies int // how many replies are to be lost
}

func (n *network) join(p *redistest.FaultProxy) *redistest.FaultProxy {
	n.mu.Lock()
	defer n.mu.Unlock()
	p.OnCommand(n.meets)
	p.Refuse(n.down)
	n.ways = append(n.ways, p)
	return p
}

// meets returns what happens to a command on its way.
func (n *network) meets(c redistest.Command) redistest.Fault {
	if !strings.HasPrefix(c.Name, "EVAL") {
		return redistest.Pass
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.replies == 0 {
		return redistest.Pass
	}
	n.replies--
	return redistest.CloseAfterExec
}

func (n *network) each(f func(*redistest.FaultProxy)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.ways {
		f(p)
	}
}

func (n *network) set(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
}

// Down takes the server off the network until Up is called: present connections break, and new
// connections are refused. The data in Redis stays, and leases in Redis expire at their usual times.
func (s *Server) Down() {
	s.network.set(true)
	s.network.each(func(p *redistest.FaultProxy) {
		p.Refuse(true)
		p.Cut()
	})
}

// Up puts the server back on the network after Down: the server accepts connections again.
func (s *Server) Up() {
	s.network.set(false)
	s.network.each(func(p *redistest.FaultProxy) { p.Refuse(false) })
}

// Silence makes all present connections silent, as on a network that loses packets: requests on these
// connections do not arrive, and no replies come back. New connections work.
func (s *Server) Silence() { s.network.each((*redistest.FaultProxy).BlackHole) }

// LoseReplies makes the server lose the replies to the next n scripts: the server runs each script, but
// breaks the connection instead of sending the reply. So no caller learns whether its script ran. All
// requests of Holdfast are scripts, except subscriptions.
func (s *Server) LoseReplies(n int) {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	s.network.replies = n
}

// DropMessages makes the server lose all messages that announce a release, until the test calls restore.
// Waiters must then notice a release without a message.
func (s *Server) DropMessages() (restore func()) {
	s.mini.DropMessages(true)
	return func() { s.mini.DropMessages(false) }
}

// bridge copies what comes from one connection to another, until one of them ends.
func bridge(w *sync.WaitGroup, from, to net.Conn) {
	w.Go(func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
		_ = from.Close()
	})
}
