package main

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast/docs/from/programs/internal/bothtest"
	"github.com/holdfast-go/holdfast/docs/from/programs/internal/etcdtest"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// openSession opens a session of a process of its own.
func openSession(t *testing.T, addr string) *concurrency.Session {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
	redistest.Must(t, err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(60))
	redistest.Must(t, err)
	t.Cleanup(func() {
		_ = session.Close() // it may have ended
		_ = client.Close()
	})
	return session
}

func TestBoth(t *testing.T) {
	etcd, s := etcdtest.Start(t), redistest.Server(t)
	session, others := openSession(t, etcd), openSession(t, etcd)
	client, other := clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, s.Client(t))
	bothtest.Exclude(t, clienttest.Generous(t), bothtest.Locks{
		Both: func(ctx context.Context, work func(context.Context) error) error {
			return both(ctx, session, client, work)
		},
		Old: func(ctx context.Context) (release func(), err error) {
			old := concurrency.NewMutex(others, "lock/bolt")
			return func() { old.Unlock(ctx) }, old.TryLock(ctx)
		},
		New:         other.Mutex("bolt"),
		OldIsTaken:  bothtest.Is(concurrency.ErrLocked),
		BothIsEnded: bothtest.Is(context.DeadlineExceeded),
	})
}

// If the session ends, so does the context of the work.
func TestBoth_TheSessionEnds(t *testing.T) {
	etcd, s := etcdtest.Start(t), redistest.Server(t)
	session := openSession(t, etcd)
	client := clienttest.OpenClient(t, s.Client(t))
	err := both(clienttest.Generous(t), session, client, func(ctx context.Context) error {
		session.Orphan()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Minute):
			return errors.New("the work goes on")
		}
	})
	redistest.Check(t, err)
}
