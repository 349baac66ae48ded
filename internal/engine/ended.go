// What a Client remembers of the generations of barriers.

package engine

import "sync"

// maxEnded is how many barriers a Client remembers, each with its last generation. That takes half
// a MB.
const maxEnded = 4096

// Ended has, for each barrier, the greatest generation that this Client knows to be over. The zero
// value knows none. It may drop a barrier: then a party of that barrier is less protected from a
// server that has lost its data.
type Ended struct {
	mu       sync.Mutex
	greatest map[string]int64
}

// Note notes that the generation of the barrier with that key is over.
func (e *Ended) Note(key string, generation int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before, known := e.greatest[key]
	if before >= generation {
		return
	}
	if e.greatest == nil || !known && len(e.greatest) >= maxEnded {
		e.greatest = make(map[string]int64)
	}
	e.greatest[key] = generation
}

// Greatest returns the greatest generation that was noted for the key; 0 if none is remembered.
func (e *Ended) Greatest(key string) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.greatest[key]
}
