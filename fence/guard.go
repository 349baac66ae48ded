// Guard: a fence in memory.

package fence

import (
	"context"
	"sync"
)

// Guard is a Fence in the memory of a process, for resources that only this process writes. The zero value is ready for
// use. A Guard keeps the token of every resource as long as the process lives. After a restart it knows no token, so
// any first token passes.
type Guard struct {
	mu     sync.Mutex
	newest map[string]int64
}

var _ Fence = (*Guard)(nil)

// Pass implements Fence. Between Pass and the write, another token may pass. If the write is in this
// process, use Do instead.
func (g *Guard) Pass(_ context.Context, resource string, token int64) error {
	return g.Do(resource, token, func() error { return nil })
}

// Do runs write if the token passes, and returns the error of write. While write runs, no other token passes, on any
// resource. So write must not use the Guard. Even if write fails or panics, the token has passed.
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
