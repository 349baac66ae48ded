package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// While it works, nobody has either lock. Whoever has one of them keeps it out.
func TestBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := holdfasttest.New(t)
		ctx, client := t.Context(), s.Client()
		locks := redsync.New(goredis.NewPool(s.Redis()))
		var taken *redsync.ErrTaken
		worked := 0
		work := func(context.Context) error {
			worked++
			if err := locks.NewMutex("lock:bolt").TryLock(); !errors.As(err, &taken) {
				t.Errorf("redsync beside it: %v", err)
			}
			if l, err := s.Client().Mutex("bolt").TryLock(ctx); !errors.Is(err, holdfast.ErrBusy) {
				l.Release(ctx)
				t.Errorf("Holdfast beside it: %v", err)
			}
			return nil
		}
		redistest.Check(t, both(ctx, locks, client, work))

		old := locks.NewMutex("lock:bolt", redsync.WithExpiry(time.Hour))
		redistest.Must(t, old.Lock())
		if err := both(ctx, locks, client, work); !errors.As(err, &taken) {
			t.Errorf("beside a holder of the old lock: %v", err)
		}
		old.Unlock()

		release := s.HoldElsewhere("bolt")
		redistest.Is(t, "beside a holder of the new lock", both(ctx, locks, client, work), holdfast.ErrBusy)
		release()

		if err := both(ctx, locks, client, work); err != nil || worked != 2 {
			t.Errorf("worked %d times, %v; want 2: neither lock is left behind", worked, err)
		}
		s.RequireNoLeases()
	})
}
