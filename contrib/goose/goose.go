// Package holdgoose runs the migrations of github.com/pressly/goose/v3 on one replica at a time, under a
// lock of Holdfast. The lock is in Redis. So it works with any database, even with one that has no
// advisory locks, and the lock uses no connection of the database.
//
//	goose.NewProvider(dialect, db, migrations, goose.WithLocker(holdgoose.New(client.Mutex("shop:migrations"))))
//
// # On success
//
// One process migrates at a time. The other processes wait for the lock, and then find that there is
// nothing to do. Lock waits as long as the context of Up allows. If that context has no deadline, Lock
// waits for ever. While the migrations run, Holdfast renews the lease, unless the mutex's options say
// otherwise. If the process dies, the next process gets the lock when the lease is over, after 30 s by
// default.
//
// # On a loss
//
// Goose gives its Locker no way to stop migrations. So if the lock is lost, the migrations go on, and
// another process may begin to migrate. When the migrations are done, Unlock fails. Up then returns its
// results, together with an error that matches holdfast.ErrLost.
//
// If the migrations must stop when the lock is lost, call Up under holdfast.Do. The context that Do
// gives to Up ends when the lock is lost. Goose then begins no other migration, and rolls the present
// migration back if it runs in a transaction. With Do, the provider needs no Locker. If the provider has
// a Locker on the same mutex, the Locker re-enters the lock.
//
//	err := holdfast.Do(ctx, mutex, func(ctx context.Context) error {
//		_, err := provider.Up(ctx)
//		return err
//	})
//
// # On an error
//
// If the lock is not granted, nothing is migrated. The error of Up matches holdfast.ErrBusy if another
// process held the lock until the context ended, and holdfast.ErrUnavailable if Redis could not be
// reached. If Redis is gone after the migrations, the migrations are done, but Unlock fails after at
// most 5 s. The lock is then free when its lease is over.
//
// Goose also takes the lock for Status and GetDBVersion, so these two calls wait for the lock.
// HasPending and GetVersions take no lock.
package holdgoose

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/pressly/goose/v3/lock"

	"github.com/holdfast-go/holdfast"
)

// Locker implements goose's interface Locker with a lock of Holdfast. Use it with goose's option
// WithLocker. Several providers may share one Locker.
type Locker struct {
	locker holdfast.Locker

	mu    sync.Mutex // guards locks
	locks []*locked  // those that were not unlocked yet, the oldest first
}

// locked is what one Lock has got.
type locked struct {
	lease *holdfast.Lease
	// perhaps: the lock of an earlier Lock was lost, and goose does not say whose it was.
	perhaps bool
}

var _ lock.Locker = (*Locker)(nil)

// New returns a Locker for goose that takes the given lock, for example a holdfast.Mutex.
func New(locker holdfast.Locker) *Locker { return &Locker{locker: locker} }

// Lock waits for the lock as long as ctx allows. If ctx carries a lease on the lock, Lock re-enters the
// lock. Lock does not use the argument *sql.DB.
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error {
	held, err := l.locker.Lock(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.locks = append(l.locks, &locked{lease: held})
	return nil
}

// Unlock releases the lock. Unlock goes on even if ctx is cancelled. If the lock was lost, the error
// matches holdfast.ErrLost. If another provider has locked by then, its Unlock returns such an error too,
// because goose does not say which provider unlocks. Unlock does not use the argument *sql.DB.
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error {
	held, err := l.oldest()
	if err != nil {
		return err
	}
	err = held.lease.Release(ctx)
	switch {
	case errors.Is(err, holdfast.ErrLost):
		l.doubt()
	case err == nil && held.perhaps:
		err = fmt.Errorf("holdgoose: this provider or another has lost its lock: %w", holdfast.ErrLost)
	}
	return err
}

// oldest takes what the oldest Lock has got that was not unlocked yet: if it was lost, a provider that unlocks late
// must not release what another has locked since.
func (l *Locker) oldest() (*locked, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.locks) == 0 {
		return nil, errors.New("holdgoose: Unlock without Lock")
	}
	held := l.locks[0]
	l.locks = l.locks[1:]
	return held, nil
}

// doubt notes that a lock was lost, which may be that of any provider that has not unlocked yet.
func (l *Locker) doubt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, other := range l.locks {
		other.perhaps = true
	}
}
