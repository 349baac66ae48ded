package peer

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// crowded is a peer that counts who is in it.
type crowded struct{ now, most atomic.Int64 }

func (c *crowded) Close() {}

func (c *crowded) Lock(string) Lock { return c }

// Pair does not exclude anybody.
func (c *crowded) Pair(_ context.Context, work func()) error {
	n := c.now.Add(1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	work()
	c.now.Add(-1)
	return nil
}

func TestBehindALocalMutexOneGoroutineContends(t *testing.T) {
	shared := new(crowded)
	p, err := behindMutex(func(string) (Process, error) { return shared, nil })("")
	redistest.Must(t, err)
	defer p.Close()
	n := 0 // guarded by the mutex, which the race detector would tell
	var all sync.WaitGroup
	for range 20 {
		lock := p.Lock("a")
		all.Go(func() {
			for range 50 {
				redistest.Check(t, lock.Pair(t.Context(), func() { n++ }))
			}
		})
	}
	all.Wait()
	if n != 1000 || shared.most.Load() != 1 {
		t.Errorf("%d times, %d at once", n, shared.most.Load())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Lock("a").Pair(ended, nil); err == nil {
		t.Error("a pair after the end")
	}
}
