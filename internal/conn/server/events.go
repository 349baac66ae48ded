// What the owner of a Manager hears of its servers.

package server

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

// Doubt says which keys may be gone: those of one slot, or all.
type Doubt struct {
	All  bool
	Slot int // of a cluster
}

// Concerns reports whether key is one of them.
func (d Doubt) Concerns(key string) bool { return d.All || keys.Slot(key) == d.Slot }

// DoubtOf is the doubt about the slot of key.
func DoubtOf(key string) Doubt { return Doubt{Slot: keys.Slot(key)} }

// TellDoubt raises Doubtful.
func (e *Events) TellDoubt(d Doubt) {
	if e != nil && e.Doubtful != nil {
		e.Doubtful(d)
	}
}

// TellReplaced raises Replaced.
func (e *Events) TellReplaced() {
	if e != nil && e.Replaced != nil {
		e.Replaced()
	}
}
