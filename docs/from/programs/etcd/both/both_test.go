package main

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast"
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

// While it works, nobody has either lock. Whoever has one of them keeps it out.
func TestBoth(t *testing.T) {
	etcd, s := etcdtest.Start(t), redistest.Server(t)
	session, others := openSession(t, etcd), openSession(t, etcd)
	client, other := clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, s.Client(t))
	ctx := clienttest.Generous(t)
	old := concurrency.NewMutex(others, "lock/bolt")
	worked := 0
	work := func(context.Context) error {
		worked++
		redistest.Is(t, "etcd beside it", old.TryLock(ctx), concurrency.ErrLocked)
		if l, err := other.Mutex("bolt").TryLock(ctx); !errors.Is(err, holdfast.ErrBusy) {
			l.Release(ctx)
			t.Errorf("Holdfast beside it: %v", err)
		}
		return nil
	}
	redistest.Check(t, both(ctx, session, client, work))

	soon := func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, 300*time.Millisecond) }
	redistest.Must(t, old.Lock(ctx))
	short, cancel := soon()
	redistest.Is(t, "beside a holder of the old lock", both(short, session, client, work), context.DeadlineExceeded)
	cancel()
	redistest.Check(t, old.Unlock(ctx))

	l := clienttest.Grab(t, other.Mutex("bolt"))
	short, cancel = soon()
	redistest.Is(t, "beside a holder of the new lock", both(short, session, client, work), holdfast.ErrBusy)
	cancel()
	clienttest.GiveBack(t, l)

	if err := both(ctx, session, client, work); err != nil || worked != 2 {
		t.Errorf("worked %d times, %v; want 2: neither lock is left behind", worked, err)
	}
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
