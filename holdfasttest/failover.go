// Failover: a server that has not got the last writes takes over.

package holdfasttest

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// remembers is how many writes a history goes back.
const remembers = 100

// history is the server's data before each of the last writes.
type history struct {
	of *redistest.MiniServer

	mu     sync.Mutex // guards what follows
	states []map[string]redistest.Value
}

// note records the server's data before a command. Commands that changed nothing count as one.
func (h *history) note(string) {
	now := h.of.Values()
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.states); n > 0 && maps.EqualFunc(h.states[n-1], now, redistest.Value.Equal) {
		return
	}
	if h.states = append(h.states, now); len(h.states) > remembers {
		h.states = slices.Delete(h.states, 0, 1)
	}
}

// back returns what was stored before the last n writes.
func (h *history) back(n int) map[string]redistest.Value {
	h.note("")
	h.mu.Lock()
	defer h.mu.Unlock()
	at := max(0, len(h.states)-1-max(0, n))
	then := h.states[at]
	h.states = h.states[:at]
	return then
}

// Failover breaks all connections, and puts a replica in the place of the master. The replica lacks the
// last n writes (at most a hundred), as can happen with asynchronous replication. docs/guarantees.md
// says what a lock does after a failover. The server's clock is not set back. So a lease that has
// expired since the lost writes is over on the replica too.
func (s *Server) Failover(n int) {
	s.network.each((*redistest.FaultProxy).Cut)
	s.mini.SetValues(s.history.back(n), time.Now())
}
