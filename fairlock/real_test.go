// This test runs on a real server, with too little memory.

package fairlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// Memory is short. The waiters go on waiting, and the lock passes between them. A newcomer gets an error.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	admin, client := server.Admin(), holdfast.New(server.Client(t))
	defer client.Close()
	m := client.FairMutex(name)
	l, err := m.Lock(t.Context())
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- holdfast.Do(context.Background(), m, func(context.Context) error { return nil }) }()
	redistest.Eventually(t, time.Minute, "the queue", func() error {
		if n, err := m.QueueLength(t.Context()); n != 1 {
			return fmt.Errorf("%d in the queue (%v)", n, err)
		}
		return nil
	})
	kept := func() float64 { return admin.ZRangeWithScores(t.Context(), aliveKey, 0, 0).Val()[0].Score }
	admin.ConfigSet(t.Context(), "maxmemory", "1")
	before := kept()
	world.WantErr(t, redistest.Err(m.Lock(t.Context())), holdfast.ErrOutOfMemory)
	world.WantErr(t, redistest.Err(m.TryLock(t.Context())), holdfast.ErrBusy)
	redistest.Eventually(t, time.Minute, "the waiter keeps its place", func() error {
		if kept() <= before {
			return errors.New("not yet")
		}
		return nil
	})
	redistest.Check(t, errors.Join(l.Release(t.Context()), <-done))
	world.WantErr(t, redistest.Err(m.TryLock(t.Context())), holdfast.ErrOutOfMemory)
	redistest.Eventually(t, time.Minute, "free", func() error {
		if n := admin.Exists(t.Context(), name, queueKey, aliveKey).Val(); n != 0 {
			return fmt.Errorf("%d keys are left", n)
		}
		return nil
	})
}
