// The registry: what this Client holds, by key.

package engine

import "sync"

// Held is a hold of this Client, as the registry knows it.
type Held interface {
	// Member returns the hold's entry in the registry.
	Registered() *Registered
	// Holder returns the owner's id.
	Holder() string
	// End ends the hold on this side, with that cause.
	End(cause error)
}

// Registered is a hold's entry in the registry. It is embedded in the hold.
type Registered struct {
	next *Registered
	held Held
}

// registry knows what this Client holds, by key. There may be more than one hold under a key: an
// older one may not have noticed yet that it was lost.
type registry struct {
	mu    sync.Mutex
	byKey map[string]*Registered
	none  chan struct{} // closed once nothing is held; nil if nobody waits for that
}

// Register notes that h is held under key.
func (e *Engine) Register(key string, h Held) {
	r, m := &e.registry, h.Registered()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey == nil {
		r.byKey = make(map[string]*Registered)
	}
	m.held, m.next = h, r.byKey[key]
	r.byKey[key] = m
}

// Unregister notes that h is no longer held.
func (e *Engine) Unregister(key string, h Held) {
	r, m := &e.registry, h.Registered()
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.byKey[key]
	switch {
	case first == m && m.next == nil:
		delete(r.byKey, key)
	case first == m:
		r.byKey[key] = m.next
	default:
		for at := first; at != nil; at = at.next {
			if at.next == m {
				at.next = m.next
				break
			}
		}
	}
	m.next = nil
	if len(r.byKey) == 0 && r.none != nil {
		close(r.none)
		r.none = nil
	}
}

// empty returns how many holds there are, and a channel that is closed when there is none.
func (r *registry) empty() (none <-chan struct{}, held int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.byKey {
		for ; m != nil; m = m.next {
			held++
		}
	}
	if held > 0 && r.none == nil {
		r.none = make(chan struct{})
	}
	return r.none, held
}

func (r *registry) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byKey) > 0
}

// Holds reports whether this Client holds something under key.
func (e *Engine) Holds(key string) bool {
	e.registry.mu.Lock()
	defer e.registry.mu.Unlock()
	return e.registry.byKey[key] != nil
}

// EndHeld ends, with that cause, those holds of this Client under key that belong to holder. It
// leaves others alone, because another owner of this Client may have been granted the lock since.
func (e *Engine) EndHeld(key, holder string, cause error) {
	for _, h := range e.registry.under(key) {
		if h.Holder() == holder {
			h.End(cause)
		}
	}
}

// HeldAt returns what this Client holds under key.
func (e *Engine) HeldAt(key string) []Held { return e.registry.under(key) }

func (r *registry) under(key string) []Held {
	r.mu.Lock()
	defer r.mu.Unlock()
	var held []Held
	for m := r.byKey[key]; m != nil; m = m.next {
		held = append(held, m.held)
	}
	return held
}

func (r *registry) end(cause error) {
	r.mu.Lock()
	var held []Held
	for _, m := range r.byKey {
		for ; m != nil; m = m.next {
			held = append(held, m.held)
		}
	}
	r.mu.Unlock()
	for _, h := range held {
		h.End(cause)
	}
}
