package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bsm/redislock"

	"github.com/holdfast-go/holdfast/docs/from/programs/internal/bothtest"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := holdfasttest.New(t)
		client, locks := s.Client(), redislock.New(s.Redis())
		bothtest.Exclude(t, t.Context(), bothtest.Locks{
			Both: func(ctx context.Context, work func(context.Context) error) error {
				return both(ctx, locks, client, work)
			},
			Old: func(ctx context.Context) (release func(), err error) {
				l, err := locks.Obtain(ctx, "lock:bolt", time.Hour, nil)
				return func() { l.Release(ctx) }, err
			},
			New:         s.Client().Mutex("bolt"),
			OldIsTaken:  bothtest.Is(redislock.ErrNotObtained),
			BothIsEnded: bothtest.Is(context.DeadlineExceeded),
		})
		s.RequireNoLeases()
	})
}
