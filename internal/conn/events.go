// What the owner of a Manager hears of its servers.

package conn

import "github.com/holdfast-go/holdfast/internal/keys"

// Events are called when something has changed at the servers. They are called on the goroutine that
// has found it out, so they must not block. One that is nil is not called.
type Events struct {
	// Doubtful says that a server may not have what was written about some keys: its connections were
	// lost, as when it restarts, or the keys are at another server now.
	Doubtful func(d Doubt)
	// Replaced says that the Sentinels name another master. What the former one did in the last
	// moments before that is forgotten.
	Replaced func()
}

// Forgets reports whether Replaced may be called.
func (m *Manager) Forgets() bool {
	_, is := m.topology.(*failover)
	return is
}

// Doubt says which keys may be gone: those of one slot, or all.
type Doubt struct {
	All  bool
	Slot int // of a cluster
}

// Concerns reports whether key is one of them.
func (d Doubt) Concerns(key string) bool { return d.All || keys.Slot(key) == d.Slot }

// slotOf is the doubt about the slot of key.
func slotOf(key string) Doubt { return Doubt{Slot: keys.Slot(key)} }

// doubt raises Doubtful.
func (e *Events) doubt(d Doubt) {
	if e != nil && e.Doubtful != nil {
		e.Doubtful(d)
	}
}

// replaced raises Replaced.
func (e *Events) replaced() {
	if e != nil && e.Replaced != nil {
		e.Replaced()
	}
}
