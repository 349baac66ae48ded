// A Locker as a sync.Locker.

package holdfast

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/lease"
)

// SyncLocker returns locker as a sync.Locker, for sync.Cond and for other code that takes a sync.Locker.
// Prefer Locker where you can, because a sync.Locker cannot return an error. Lock waits as long as ctx
// allows, and panics if it fails. Unlock releases the oldest Lock that is not unlocked yet. It panics if
// there is no such Lock, if the lease of that Lock was lost, or if Redis does not answer the release. So if
// one goroutine calls Unlock too late, it does not release what another goroutine has locked since.
//
// Lock does not re-enter a lease that ctx carries. If it did, all goroutines that share the sync.Locker
// would hold the lock at once. If a goroutine that holds the lock locks it again, it waits for itself, as
// with a sync.Mutex.
func SyncLocker(ctx context.Context, locker Locker) sync.Locker {
	return &syncLocker{ctx: lease.Bare(ctx), locker: locker}
}

type syncLocker struct {
	ctx    context.Context
	locker Locker

	mu     sync.Mutex // guards leases
	leases []*Lease   // not unlocked yet, the oldest first
}

func (s *syncLocker) Lock() {
	l, err := s.locker.Lock(s.ctx)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases = append(s.leases, l)
}

func (s *syncLocker) Unlock() {
	if err := s.oldest().Release(s.ctx); err != nil {
		panic(err)
	}
}

func (s *syncLocker) oldest() *Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.leases) == 0 {
		panic("holdfast: Unlock of a sync.Locker that is not locked")
	}
	l := s.leases[0]
	s.leases = s.leases[1:]
	return l
}
