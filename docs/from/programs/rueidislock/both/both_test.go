package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// While it works, nobody has either lock. Whoever has one of them keeps it out.
func TestBoth(t *testing.T) {
	s := redistest.Server(t)
	locker := func() rueidislock.Locker {
		l, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{InitAddress: []string{s.Addr()}},
			TryNextAfter: 10 * time.Second,
		})
		redistest.Must(t, err)
		t.Cleanup(l.Close)
		return l
	}
	locks, others := locker(), locker()
	client, other := clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, s.Client(t))
	ctx := clienttest.Generous(t)
	worked := 0
	work := func(context.Context) error {
		worked++
		if _, _, err := others.TryWithContext(ctx, "bolt"); !errors.Is(err, rueidislock.ErrNotLocked) {
			t.Errorf("rueidislock beside it: %v", err)
		}
		if l, err := other.Mutex("bolt").TryLock(ctx); !errors.Is(err, holdfast.ErrBusy) {
			l.Release(ctx)
			t.Errorf("Holdfast beside it: %v", err)
		}
		return nil
	}
	redistest.Check(t, both(ctx, locks, client, work))

	soon := func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, 300*time.Millisecond) }
	_, release, err := others.WithContext(ctx, "bolt")
	redistest.Must(t, err)
	short, cancel := soon()
	redistest.Is(t, "beside a holder of the old lock", both(short, locks, client, work), context.DeadlineExceeded)
	cancel()
	release()

	l := clienttest.Grab(t, other.Mutex("bolt"))
	short, cancel = soon()
	redistest.Is(t, "beside a holder of the new lock", both(short, locks, client, work), holdfast.ErrBusy)
	cancel()
	clienttest.GiveBack(t, l)

	if err := both(ctx, locks, client, work); err != nil || worked != 2 {
		t.Errorf("worked %d times, %v; want 2: neither lock is left behind", worked, err)
	}
}
