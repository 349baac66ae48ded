// A Locker as a sync.Locker.

package holdfast

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/lease"
)

// SyncLocker returns locker as a sync.Locker, for sync.Cond and for code that takes one. Prefer Locker
// where you can: a sync.Locker cannot return an error. Lock waits as long as ctx allows, and panics if
// it fails. Unlock ends the oldest Lock that is not unlocked yet; it panics if there is none, if that
// lock was lost meanwhile, or if Redis does not answer the release. So one goroutine's late Unlock
// never frees what another has locked since.
//
// Lock does not re-enter a lease that ctx carries. If it did, all goroutines that share the
// sync.Locker would hold the lock at once. As with a sync.Mutex, a goroutine that already holds the
// lock and locks it again waits for itself.
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
