// What each library sees where the other holds a lock of the same name.

package programs

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// name is the key of the old library, and the name of the Mutex.
const name = "bolt"

// bubble runs a test in virtual time, with a server and a Mutex of the name.
func bubble(t *testing.T, test func(t *testing.T, s *holdfasttest.Server, m holdfast.Locker)) {
	synctest.Test(t, func(t *testing.T) {
		s := holdfasttest.New(t)
		test(t, s, s.Client().Mutex(name))
	})
}

// wantForeign has the Mutex asked for while an old lock stands there: the error says so, at once, and
// the key is left as it is.
func wantForeign(t *testing.T, rdb *redis.Client, m holdfast.Locker) {
	t.Helper()
	before := rdb.Dump(t.Context(), name).Val()
	_, err := m.Lock(t.Context())
	if !errors.Is(err, holdfast.ErrWrongType) || errors.Is(err, holdfast.ErrBusy) || !strings.Contains(err.Error(), "a string stands there") {
		t.Errorf("Lock = %v, want ErrWrongType, and what stands there", err)
	}
	if page := read(t, "../README.md"); err != nil && !strings.Contains(page, "\n    "+err.Error()+"\n") {
		t.Errorf("../README.md does not have the error %v", err)
	}
	if after := rdb.Dump(t.Context(), name).Val(); after != before {
		t.Error("the key has changed")
	}
}

func TestSameName_Redsync(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, m holdfast.Locker) {
		old := redsync.New(goredis.NewPool(s.Redis())).NewMutex(name)
		redistest.Must(t, old.Lock())
		wantForeign(t, s.Redis(), m)
		if ok, err := old.Unlock(); !ok || err != nil {
			t.Errorf("Unlock = %t, %v", ok, err)
		}

		l := clienttest.Grab(t, m)
		var taken *redsync.ErrTaken
		if err := old.TryLock(); !errors.As(err, &taken) {
			t.Errorf("TryLock = %v, want ErrTaken", err)
		}
		if err := old.Lock(); !errors.As(err, &taken) { // after 32 tries
			t.Errorf("Lock = %v, want ErrTaken", err)
		}
		if ok, err := old.Unlock(); ok || err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("Unlock = %t, %v, want WRONGTYPE", ok, err)
		}
		if ok, err := old.Extend(); ok || err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("Extend = %t, %v, want WRONGTYPE", ok, err)
		}
		clienttest.GiveBack(t, l)
		if err := old.Lock(); err != nil {
			t.Errorf("Lock of a free name = %v", err)
		}
		old.Unlock()
	})
}

func TestSameName_Redislock(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, m holdfast.Locker) {
		ctx := t.Context()
		locks := redislock.New(s.Redis())
		old, err := locks.Obtain(ctx, name, time.Minute, nil)
		redistest.Must(t, err)
		wantForeign(t, s.Redis(), m)
		redistest.Check(t, old.Release(ctx))

		l := clienttest.Grab(t, m)
		retry := &redislock.Options{RetryStrategy: redislock.LinearBackoff(time.Second)}
		_, err = locks.Obtain(ctx, name, time.Minute, retry)
		if err == nil || errors.Is(err, redislock.ErrNotObtained) || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("Obtain = %v, want WRONGTYPE and not ErrNotObtained", err)
		}
		redistest.Is(t, "Refresh", old.Refresh(ctx, time.Minute, nil), redislock.ErrNotObtained)
		redistest.Is(t, "Release", old.Release(ctx), redislock.ErrLockNotHeld)
		clienttest.GiveBack(t, l)
		if old, err = locks.Obtain(ctx, name, time.Minute, nil); err != nil {
			t.Errorf("Obtain of a free name = %v", err)
		}
		old.Release(ctx)
	})
}

// ShedLock writes with SET, which replaces any type: what it does is done here by its commands.
func TestSameName_ShedLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, m holdfast.Locker) {
		ctx, rdb := t.Context(), s.Redis()
		rdb.SetNX(ctx, name, "ADDED:2026-11-22T10:00:00Z@host", time.Minute)
		wantForeign(t, rdb, m)
		rdb.Del(ctx, name)

		l := clienttest.Grab(t, m)
		if ok, err := rdb.SetNX(ctx, name, "ADDED", time.Minute).Result(); ok || err != nil {
			t.Errorf("lock = %t, %v, want it skipped", ok, err)
		}
		// A run whose lockAtMostFor is over prolongs what it finds.
		if ok, err := rdb.SetXX(ctx, name, "ADDED", time.Minute).Result(); !ok || err != nil {
			t.Errorf("extend = %t, %v", ok, err)
		}
		redistest.Is(t, "Release", l.Release(ctx), holdfast.ErrWrongType)
		rdb.Del(ctx, name)
	})
}

// Rueidislock puts a prefix before the name, so the same name is another key.
func TestSameName_Rueidislock(t *testing.T) {
	s := realServer(t)
	ctx := redistest.Within(t, patience)
	locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{s.addr}},
		TryNextAfter: 10 * time.Second,
	})
	redistest.Must(t, err)
	defer locks.Close()
	client := holdfast.New(s.rdb)
	defer client.Close()

	_, release, err := locks.WithContext(ctx, name)
	redistest.Must(t, err)
	clienttest.GiveBack(t, clienttest.Grab(t, client.Mutex(name))) // nobody is in its way
	for _, key := range []string{"rueidislock:0:" + name, "rueidislock:1:" + name} {
		if _, err := client.Mutex(key).TryLock(ctx); !errors.Is(err, holdfast.ErrWrongType) || !strings.Contains(err.Error(), "a string stands there") {
			t.Errorf("TryLock of %s = %v", key, err)
		}
	}
	release()
}
