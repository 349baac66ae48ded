// What the owner of a Manager hears of its servers.

package conn

import "github.com/holdfast-go/holdfast/internal/keys"

// Events are called when something has changed at the servers. They are called on the goroutine that
// has found it out, so they must not block. One that is nil is not called.
type Events struct {
	// Doubtful says that a server may not have what was written about some keys: its connections were
	// lost, as when it restarts, or the keys are at another server now. concerns reports whether a key
	// is one of them.
	Doubtful func(concerns func(key string) bool)
	// Replaced says that the Sentinels name another master. What the former one did in the last
	// moments before that is forgotten.
	Replaced func()
}

// Forgets reports whether Replaced may be called.
func (m *Manager) Forgets() bool {
	_, is := m.topology.(*failover)
	return is
}

// doubt raises Doubtful.
func (e *Events) doubt(concerns func(key string) bool) {
	if e != nil && e.Doubtful != nil {
		e.Doubtful(concerns)
	}
}

// replaced raises Replaced.
func (e *Events) replaced() {
	if e != nil && e.Replaced != nil {
		e.Replaced()
	}
}

// everyKey is what concerns all keys.
func everyKey(string) bool { return true }

// sameSlot returns what concerns the keys in the slot of key.
func sameSlot(key string) func(string) bool {
	slot := keys.Slot(key)
	return func(other string) bool { return keys.Slot(other) == slot }
}
