// The error of a lock that is held says by whom, as far as the refusal said it.

package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// wantBusy fails the test unless err says that the lock is held.
func wantBusy(t *testing.T, err error) *holdfast.BusyError {
	t.Helper()
	var busy *holdfast.BusyError
	if !errors.Is(err, holdfast.ErrBusy) || !errors.As(err, &busy) {
		t.Fatalf("%v", err)
	}
	return busy
}

func TestBusyErrorsSayWhoHolds(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		other := holdfast.New(mini.Client())
		defer other.Close()
		granted := time.Now()
		l := clienttest.Grab(t, c.Mutex("x"))
		time.Sleep(4 * time.Second)
		short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		for what, try := range map[string]func() error{
			"a try of a Mutex":      func() error { _, err := other.Mutex("x").TryLock(t.Context()); return err },
			"a try of a FairMutex":  func() error { _, err := other.FairMutex("x").TryLock(t.Context()); return err },
			"a wait for a Mutex":    func() error { _, err := other.Mutex("x").Lock(short); return err },
			"Do, which waits":       func() error { return holdfast.Do(t.Context(), other.Mutex("x"), nil, holdfast.WaitAtMost(time.Second)) },
			"a MultiLock, of which": func() error { _, err := holdfast.NewMultiLock(other.Mutex("x")).TryLock(t.Context()); return err },
		} {
			busy := wantBusy(t, try())
			if busy.Holder != l.Owner() || !busy.Since.Equal(granted) || busy.Left <= 20*time.Second || busy.Left > 30*time.Second {
				t.Errorf("%s: held by %s since %v, %v left", what, busy.Holder.Short(), busy.Since, busy.Left)
			}
		}
		synctest.Wait() // those who waited give up their places in the background: the release must not hand the lock to one
		clienttest.GiveBack(t, l)

		java := javaHolder()
		rdb.HSet(t.Context(), "x", java, 1)
		for _, m := range []interface {
			TryLock(context.Context) (*holdfast.Lease, error)
		}{other.Mutex("x"), other.FairMutex("x")} {
			_, err := m.TryLock(t.Context())
			if busy := wantBusy(t, err); busy.Holder.String() != java || !busy.Since.IsZero() || busy.Left != holdfast.NoExpiry {
				t.Errorf("held by Java: %+v", busy)
			}
		}
		rdb.Del(t.Context(), "x")
	})
}

// A waiter that looks, for a long time, still says who holds the lock; and does not name a holder that
// has been followed by another meanwhile.
func TestBusyErrorsOfAWaiterThatLooks(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		other := holdfast.New(mini.Client())
		defer other.Close()
		l := clienttest.Grab(t, c.Mutex("x"))
		wait := func(meanwhile func()) *holdfast.BusyError {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			time.AfterFunc(20*time.Second, meanwhile)
			_, err := other.Mutex("x").Lock(ctx)
			return wantBusy(t, err)
		}
		if busy := wait(func() {}); busy.Holder != l.Owner() || busy.Since.IsZero() || busy.Left < 15*time.Second {
			t.Errorf("held by %s since %v, %v left", busy.Holder.Short(), busy.Since, busy.Left)
		}
		synctest.Wait() // the waiter gives up its place in the background: the release must not hand the lock to it
		clienttest.GiveBack(t, l)

		rdb.HSet(t.Context(), "x", javaHolder(), 1)
		busy := wait(func() { // by another thread, and without a message
			_, _ = rdb.TxPipelined(context.Background(), func(tx redis.Pipeliner) error { // so that no waiter finds it free
				tx.Del(context.Background(), "x")
				tx.HSet(context.Background(), "x", "6e0e2d3c-0000-4000-8000-000000000001:7", 1)
				return nil
			})
		})
		if !busy.Holder.IsZero() || !busy.Since.IsZero() || busy.Left != holdfast.NoExpiry {
			t.Errorf("after another came: held by %s since %v, %v left", busy.Holder.Short(), busy.Since, busy.Left)
		}
		rdb.Del(t.Context(), "x")
	})
}

// Where Redis says no holder, the error says how long it may last, if that is known.
func TestBusyErrorsOfOtherKinds(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		read := clienttest.Grab(t, c.RWMutex("x").RLocker())
		defer clienttest.GiveBack(t, read)
		_, err := c.RWMutex("x").TryLock(t.Context())
		if busy := wantBusy(t, err); !busy.Holder.IsZero() || !busy.Since.IsZero() || busy.Left != 30*time.Second {
			t.Errorf("%+v", busy)
		}
		_, err = c.Mutex("x").TryLock(t.Context())
		if busy := wantBusy(t, err); !busy.Holder.IsZero() || busy.Left != 30*time.Second {
			t.Errorf("a Mutex of the name of an RWMutex: %+v", busy)
		}
		permits := c.PermitSemaphore("p")
		if err := permits.SetPermits(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		taken := clienttest.Grab(t, permits.Locker(1))
		defer clienttest.GiveBack(t, taken)
		_, err = permits.TryAcquire(t.Context(), 1)
		if busy := wantBusy(t, err); !busy.Holder.IsZero() {
			t.Errorf("%+v", busy)
		}
	})
}

// A refusal names the holder at no request more.
func TestABusyTryIsOneRequest(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		l := clienttest.Grab(t, c.Mutex("x"))
		defer clienttest.GiveBack(t, l)
		other := holdfast.New(mini.Client())
		defer other.Close()
		_, _ = other.Mutex("x").TryLock(t.Context())
		before := mini.CommandCount()
		_, err := other.Mutex("x").TryLock(t.Context())
		wantBusy(t, err)
		// One EVALSHA, and within it TIME, PTTL, HEXISTS, GET, HEXISTS and HGETALL.
		if n := mini.CommandCount() - before; n > 7 {
			t.Errorf("%d commands", n)
		}
	})
}
