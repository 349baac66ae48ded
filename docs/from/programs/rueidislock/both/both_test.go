package main

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/holdfast-go/holdfast/docs/from/programs/internal/bothtest"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

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
	bothtest.Exclude(t, clienttest.Generous(t), bothtest.Locks{
		Both: func(ctx context.Context, work func(context.Context) error) error {
			return both(ctx, locks, client, work)
		},
		Old: func(ctx context.Context) (release func(), err error) {
			_, release, err = others.WithContext(ctx, "bolt")
			return release, err
		},
		New:         other.Mutex("bolt"),
		OldIsTaken:  bothtest.Is(context.DeadlineExceeded), // it waits
		BothIsEnded: bothtest.Is(context.DeadlineExceeded),
	})
}
