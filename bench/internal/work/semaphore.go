// A thousand goroutines want the ten permits of a semaphore.

package work

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/interop"
	"github.com/holdfast-go/holdfast/semaphore"
)

// Semaphore is the name of the workload.
const Semaphore = "semaphore"

func semaphores() []Workload {
	const permits, waiters = 10, 1000
	return []Workload{{
		Name:       Semaphore,
		Title:      fmt.Sprintf("semaphore of %d, %d waiters in %d processes", permits, waiters, processes),
		Processes:  processes,
		Contenders: []string{peer.Holdfast},
		Redisson:   redisson(interop.Semaphore(permits, processes, waiters)),
		Run: func(ctx context.Context, s *Site) error {
			client, closeAll := peer.NewClient(s.Addr)
			defer closeAll()
			sem := client.Semaphore(s.Name)
			if _, err := sem.TrySetPermits(ctx, permits); err != nil {
				return err
			}
			return s.Locks(ctx, s.Share(waiters), func(int) peer.Lock { return permit{sem} }, nil)
		},
	}}
}

// permit is one permit of a semaphore, as a lock.
type permit struct{ semaphore *semaphore.Semaphore }

func (p permit) Pair(ctx context.Context, work func()) error {
	if err := p.semaphore.Acquire(ctx, 1); err != nil {
		return err
	}
	if work != nil {
		work()
	}
	return p.semaphore.Release(context.WithoutCancel(ctx), 1)
}
