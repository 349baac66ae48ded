package holdfast

import (
	"context"
	"errors"
	"sync"
)

// Do runs work while it holds what locker locks. It waits for it as long as ctx
// allows, gives work a context that is cancelled if the lease is lost, and
// releases when work returns or panics.
//
// If the lock was not got work is not run, and the error says why. Otherwise
// work's error is returned; if the lease ended while work ran, or the release
// failed, that is joined to it, so that errors.Is finds either.
func Do(ctx context.Context, locker Locker, work func(ctx context.Context) error) (err error) {
	l, err := locker.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Release(ctx)) }()
	return work(l.Context(ctx))
}

// SyncLocker returns locker as a sync.Locker, for sync.Cond and for code that
// takes one. Its Lock waits as long as ctx allows and panics if it fails, which
// a sync.Locker has no other way to say: prefer Locker where you can. Its Unlock
// ends the oldest Lock that was not unlocked yet, and panics if there is none or
// if it was lost meanwhile; so one goroutine's late Unlock never frees what
// another has locked since.
func SyncLocker(ctx context.Context, locker Locker) sync.Locker {
	return &syncLocker{ctx: ctx, locker: locker}
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
