// Behind a local mutex, only one goroutine of each process contends for the lock at a time. That is
// what users of the other libraries do where many goroutines want one lock.

package peer

import (
	"context"
	"sync"
)

// behindMutex puts a sync.Mutex for each name in front of a peer's locks.
func behindMutex(open func(addr string) (Process, error)) func(addr string) (Process, error) {
	return func(addr string) (Process, error) {
		p, err := open(addr)
		return &localProcess{Process: p, mutexes: make(map[string]*sync.Mutex)}, err
	}
}

type localProcess struct {
	Process

	mu      sync.Mutex // guards mutexes
	mutexes map[string]*sync.Mutex
}

// Lock implements Process.
func (p *localProcess) Lock(name string) Lock {
	p.mu.Lock()
	defer p.mu.Unlock()
	mutex := p.mutexes[name]
	if mutex == nil {
		mutex = new(sync.Mutex)
		p.mutexes[name] = mutex
	}
	return &localLock{mutex, p.Process.Lock(name)}
}

type localLock struct {
	local  *sync.Mutex
	shared Lock
}

// Pair implements Lock. A goroutine that waits for the local mutex does not notice the end of ctx,
// but those before it do.
func (l *localLock) Pair(ctx context.Context, work func()) error {
	l.local.Lock()
	defer l.local.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.shared.Pair(ctx, work)
}
