// Guard: a fence in memory.

package fence

import (
	"context"
	"sync"
)

// Guard is a Fence in the memory of a process, for what only that process writes. The zero value is ready. It
// keeps the token of every resource for as long as the process lives. After a restart it knows no token, so
// the first one passes, whichever it is.
type Guard struct {
	mu     sync.Mutex
	newest map[string]int64
}

var _ Fence = (*Guard)(nil)

// Pass implements Fence. Another token may pass between Pass and the write: if the write is in this
// process too, use Do.
func (g *Guard) Pass(_ context.Context, resource string, token int64) error {
	return g.Do(resource, token, func() error { return nil })
}

// Do runs write if the token passes, and returns its error. No other token passes meanwhile, on any resource;
// write must not use the Guard. Even if write fails or panics, the token has passed.
func (g *Guard) Do(resource string, token int64, write func() error) error {
	if err := check(resource, token); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if token < g.newest[resource] {
		return stale(resource, token)
	}
	if g.newest == nil {
		g.newest = make(map[string]int64)
	}
	g.newest[resource] = token
	return write()
}
