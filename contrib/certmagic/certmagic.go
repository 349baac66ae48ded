// Package holdcertmagic gives Holdfast's locks to github.com/caddyserver/certmagic. With these locks,
// only one of the servers that share a storage obtains or renews a certificate at a time. The
// certificates stay in the storage. Only the locks of the storage are replaced.
//
//	certmagic.Default.Storage = holdcertmagic.New(client, storage)
//
// # On success
//
// Lock waits as long as its context allows. While the lock is held, Holdfast renews its lease in the
// background. If the process dies, the lock is free when the lease is over, after 30 s by default.
//
// # On a loss
//
// Certmagic gives its Locker no way to stop an attempt to obtain a certificate. So if the lock is lost,
// the attempt goes on to its end, and another server may begin an attempt at the same time. Before each
// further attempt, certmagic calls RenewLockLease. If the lock was lost, RenewLockLease tries to take
// the lock again. If RenewLockLease gets the lock, certmagic first looks whether another server has put
// the certificate into the storage, and then makes the attempt. If another server has the lock, the
// attempt fails, and certmagic tries again later. If the lock is not held at the end, Unlock fails with
// an error that matches holdfast.ErrLost. Certmagic logs this error.
//
// # On an error
//
// If Redis is out of reach, Lock waits for Redis as long as its context allows. If that context does not
// end, Lock waits for ever. TryLock fails after 3 s. Unlock fails after at most 5 s, and the lock is
// free when its lease is over.
package holdcertmagic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lease"
)

// Prefix is the beginning of each lock's name in Redis. Certmagic's own name for the lock follows the
// Prefix.
const Prefix = "certmagic:"

// Storage wraps a certmagic.Storage. It uses Holdfast's locks instead of the locks of the wrapped
// storage.
type Storage struct {
	certmagic.Storage // for everything but the locks

	client  *holdfast.Client
	options []holdfast.LeaseOption

	mu   sync.Mutex                   // guards held
	held map[string][]*holdfast.Lease // by name, those that were not unlocked yet, the oldest first
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// New returns a Storage that wraps storage and uses Holdfast's locks. All servers that share the storage
// must wrap it with New. options override the Client's defaults. Do not use lease.Fixed, because a fixed
// lease ends at its time even if certmagic is not done. The default is a lease that is renewed.
func New(client *holdfast.Client, storage certmagic.Storage, options ...holdfast.LeaseOption) *Storage {
	return &Storage{Storage: storage, client: client, options: options, held: make(map[string][]*holdfast.Lease)}
}

// Lock waits for the lock of that name as long as ctx allows.
func (s *Storage) Lock(ctx context.Context, name string) error {
	// Certmagic's locks are not reentrant: two goroutines may have the same context.
	l, err := s.mutex(name).Lock(lease.Bare(ctx))
	if err != nil {
		return err
	}
	s.add(name, l)
	return nil
}

// TryLock asks once for the lock of that name. If somebody else holds the lock, TryLock returns false
// and no error.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	l, err := s.mutex(name).TryLock(lease.Bare(ctx))
	switch {
	case errors.Is(err, holdfast.ErrBusy):
		return false, nil
	case err != nil:
		return false, err
	}
	s.add(name, l)
	return true, nil
}

// Unlock releases the lock of that name. If this process has locked the name several times, Unlock
// releases the oldest of these locks. Unlock goes on even if ctx is cancelled. If the lock was lost
// before, the error matches holdfast.ErrLost. If this process held the lock, the lock counts as unlocked
// even if Unlock returns an error.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	s.mu.Lock()
	leases := s.held[name]
	if len(leases) == 0 {
		s.mu.Unlock()
		return fmt.Errorf("holdcertmagic: unlock of %q, which is not locked", name)
	}
	if s.held[name] = leases[1:]; len(leases) == 1 {
		delete(s.held, name)
	}
	s.mu.Unlock()
	return leases[0].Release(ctx)
}

// RenewLockLease makes sure that Redis still has the lock of that name. If the lock was lost,
// RenewLockLease tries to take the lock again. If another server has the lock by then, the error matches
// holdfast.ErrBusy.
//
// RenewLockLease does not use the duration. Certmagic asks for hours, because certmagic wants a lock of
// a fixed length to last until the next attempt. Holdfast renews its locks anyway, and a lock must not
// stay held for hours after its process has died.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	l := s.oldest(name)
	if l == nil {
		return fmt.Errorf("holdcertmagic: renewal of %q, which is not locked", name)
	}
	err := l.Extend(ctx, lease.MinLease) // never shortens; asks Redis whether it has the lock
	if err == nil || !errors.Is(err, holdfast.ErrLost) {
		return err
	}
	again, err := s.mutex(name).TryLock(lease.Bare(ctx))
	if err != nil {
		return err
	}
	if !s.replace(name, l, again) { // unlocked meanwhile
		return again.Release(ctx)
	}
	return nil
}

func (s *Storage) mutex(name string) *holdfast.Mutex {
	return s.client.Mutex(Prefix+name, s.options...)
}

func (s *Storage) add(name string, l *holdfast.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = append(s.held[name], l)
}

func (s *Storage) oldest(name string) *holdfast.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held[name]) == 0 {
		return nil
	}
	return s.held[name][0]
}

// replace puts the lease with in the place of old, and reports whether old was still the oldest
// lease of the name.
func (s *Storage) replace(name string, old, with *holdfast.Lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held[name]) == 0 || s.held[name][0] != old {
		return false
	}
	s.held[name][0] = with
	return true
}
