package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// While it works, nobody has either lock, nor within atLeast. Whoever has one of them keeps it out.
func TestBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := holdfasttest.New(t)
		ctx, client, rdb := t.Context(), s.Client(), s.Redis()
		const key = "job-lock:shop:report"
		worked := 0
		beside := func() {
			t.Helper()
			if ok, err := rdb.SetNX(ctx, key, "ADDED", time.Minute).Result(); ok || err != nil {
				t.Errorf("ShedLock beside it: %t, %v", ok, err)
			}
			if l, err := s.Client().Mutex("report").TryLock(ctx); !errors.Is(err, holdfast.ErrBusy) {
				l.Release(ctx)
				t.Errorf("Holdfast beside it: %v", err)
			}
		}
		work := func(context.Context) error {
			worked++
			beside()
			return nil
		}
		redistest.Check(t, both(ctx, rdb, client, work))
		time.Sleep(atLeast - time.Second)
		beside()
		redistest.Is(t, "within atLeast", both(ctx, rdb, client, work), holdfast.ErrBusy)
		time.Sleep(2 * time.Second)

		rdb.SetNX(ctx, key, "ADDED", time.Minute)
		redistest.Is(t, "beside a holder of the old lock", both(ctx, rdb, client, work), holdfast.ErrBusy)
		rdb.Del(ctx, key)

		release := s.HoldElsewhere("report")
		redistest.Is(t, "beside a holder of the new lock", both(ctx, rdb, client, work), holdfast.ErrBusy)
		release()
		time.Sleep(atLeast + time.Second)

		if err := both(ctx, rdb, client, work); err != nil || worked != 2 {
			t.Errorf("worked %d times, %v; want 2: neither lock is left behind", worked, err)
		}
		time.Sleep(atLeast + time.Second)
		s.RequireNoLeases()
	})
}
