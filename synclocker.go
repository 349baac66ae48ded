// A Locker as a sync.Locker.

package holdfast

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/lease"
)

// SyncLocker returns locker as a sync.Locker, for sync.Cond and for code that
// takes one. Its Lock waits as long as ctx allows and panics if it fails, which
// a sync.Locker has no other way to say: prefer Locker where you can. Its Unlock
// ends the oldest Lock that was not unlocked yet, and panics if there is none or
// if it was lost meanwhile; so one goroutine's late Unlock never frees what
// another has locked since.
//
// Its Lock does not re-enter a lease that ctx carries, or all goroutines that share the
// sync.Locker would be in at once: as with a sync.Mutex, who holds the lock already waits
// for itself.
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
