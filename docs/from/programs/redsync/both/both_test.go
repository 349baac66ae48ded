package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/holdfast-go/holdfast/docs/from/programs/internal/bothtest"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := holdfasttest.New(t)
		client, locks := s.Client(), redsync.New(goredis.NewPool(s.Redis()))
		bothtest.Exclude(t, t.Context(), bothtest.Locks{
			Both: func(ctx context.Context, work func(context.Context) error) error {
				return both(ctx, locks, client, work)
			},
			Old: func(context.Context) (release func(), err error) {
				l := locks.NewMutex("lock:bolt", redsync.WithExpiry(time.Hour))
				return func() { l.Unlock() }, l.TryLock()
			},
			New:         s.Client().Mutex("bolt"),
			OldIsTaken:  func(err error) bool { return errors.As(err, new(*redsync.ErrTaken)) },
			BothIsEnded: bothtest.Is(redsync.ErrFailed),
		})
		s.RequireNoLeases()
	})
}
