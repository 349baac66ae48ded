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
// panics if the lock is not held, or was lost meanwhile.
func SyncLocker(ctx context.Context, locker Locker) sync.Locker {
	return &syncLocker{ctx: ctx, locker: locker}
}

type syncLocker struct {
	ctx    context.Context
	locker Locker

	mu    sync.Mutex // guards lease
	lease *Lease     // of whoever has locked
}

func (s *syncLocker) Lock() {
	l, err := s.locker.Lock(s.ctx)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	s.lease = l
	s.mu.Unlock()
}

func (s *syncLocker) Unlock() {
	s.mu.Lock()
	l := s.lease
	s.lease = nil
	s.mu.Unlock()
	if l == nil {
		panic("holdfast: Unlock of a sync.Locker that is not locked")
	}
	if err := l.Release(s.ctx); err != nil {
		panic(err)
	}
}
