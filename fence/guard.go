// Guard: a fence in memory.

package fence

import (
	"context"
	"sync"
)

// Guard is a Fence in the memory of a process, for resources to which only this process writes. The zero
// value is ready for use. A Guard keeps the token of every resource as long as the process lives. After
// a restart of the process the Guard knows no token, so the first token of each resource passes.
type Guard struct {
	mu     sync.Mutex
	newest map[string]int64
}

var _ Fence = (*Guard)(nil)

// Pass implements Fence. After Pass returns and before the program writes, another token may pass. If
// this process does the write, use Do instead.
func (g *Guard) Pass(_ context.Context, resource string, token int64) error {
	return g.Do(resource, token, func() error { return nil })
}

// Do calls write if the token passes for the resource, and returns the error of write. If the token does
// not pass, Do does not call write, and returns the error that Pass would return. While write runs, no
// other token passes the Guard, for any resource. So write must not use the Guard, because it would wait
// for itself. Even if write fails or panics, the token has passed.
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
