package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bsm/redislock"

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
		locks := redislock.New(s.Redis())
		worked := 0
		work := func(context.Context) error {
			worked++
			if _, err := locks.Obtain(ctx, "lock:bolt", time.Minute, nil); !errors.Is(err, redislock.ErrNotObtained) {
				t.Errorf("redislock beside it: %v", err)
			}
			if l, err := s.Client().Mutex("bolt").TryLock(ctx); !errors.Is(err, holdfast.ErrBusy) {
				l.Release(ctx)
				t.Errorf("Holdfast beside it: %v", err)
			}
			return nil
		}
		redistest.Check(t, both(ctx, locks, client, work))

		old, err := locks.Obtain(ctx, "lock:bolt", time.Hour, nil)
		redistest.Must(t, err)
		redistest.Is(t, "beside a holder of the old lock", both(ctx, locks, client, work), context.DeadlineExceeded) // redislock's, after the ttl
		old.Release(ctx)

		release := s.HoldElsewhere("bolt")
		redistest.Is(t, "beside a holder of the new lock", both(ctx, locks, client, work), holdfast.ErrBusy)
		release()

		if err := both(ctx, locks, client, work); err != nil || worked != 2 {
			t.Errorf("worked %d times, %v; want 2: neither lock is left behind", worked, err)
		}
		s.RequireNoLeases()
	})
}
