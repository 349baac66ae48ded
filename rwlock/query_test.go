// These tests are about a lock that very many owners read, or have read: each script looks at few of the
// readers, and all together find every reader.

package rwlock_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// readerID is the owner id of the i-th of many readers.
func readerID(i int) string { return fmt.Sprintf("33333333-3333-3333-3333-333333333333:%d", i) }

// crowd makes a lock that n owners read. The leases of the first dead of these owners are over.
func crowd(t testing.TB, rdb redis.UniversalClient, n, dead int) {
	t.Helper()
	for from := 0; from < n; from += 10_000 {
		pipe := rdb.Pipeline()
		for i := from; i < min(from+10_000, n); i++ {
			pipe.HSet(t.Context(), name, "mode", "read", readerID(i), 2)
			if i < dead {
				continue
			}
			pipe.Set(t.Context(), key(readerID(i), 1), 1, time.Hour)
			pipe.Set(t.Context(), key(readerID(i), 2), 1, time.Hour)
		}
		pipe.PExpire(t.Context(), name, 2*time.Hour)
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// timesRun returns how often the server has run a command, including inside scripts.
func timesRun(t *testing.T, s *redistest.Proc, command string) int {
	t.Helper()
	stats := s.Admin().Info(t.Context(), "commandstats").Val()
	found := regexp.MustCompile(`cmdstat_` + command + `:calls=(\d+)`).FindStringSubmatch(stats)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

func TestAQueryLooksAtFewReadersAtATime(t *testing.T) {
	const n, dead = 3000, 1000
	s := redistest.Server(t)
	crowd(t, s.Admin(), n, dead)
	c := client(t, s.Client(t))
	m := c.RWMutex(name)
	owner := func(i int) lease.Owner {
		o, err := lease.ParseOwner(readerID(i))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for _, q := range []struct {
		name string
		ask  func(context.Context) (any, error)
		want any
		most int // calls of PTTL in each call of a script, at most
	}{
		{"Locked", func(ctx context.Context) (any, error) { return m.Locked(ctx) }, false, 0},
		{"HeldBy", func(ctx context.Context) (any, error) { return m.HeldBy(ctx, owner(n-1)) }, false, 0},
		{"RHoldCount", func(ctx context.Context) (any, error) { return m.RHoldCount(ctx, owner(n-1)) }, 2, 2},
		{"RHeldBy", func(ctx context.Context) (any, error) { return m.RHeldBy(ctx, owner(0)) }, false, 2},
		{"Holder", func(ctx context.Context) (any, error) { return m.Holder(ctx) }, lease.Owner{}, 0},
		{"ForceRelease", func(ctx context.Context) (any, error) { return m.ForceRelease(ctx) }, false, 0},
		{"RLocked", func(ctx context.Context) (any, error) { return m.RLocked(ctx) }, true, 1000},
		{"ReadHolds", func(ctx context.Context) (any, error) { return m.ReadHolds(ctx) }, 2 * (n - dead), 1000},
		{"RHolders", func(ctx context.Context) (any, error) {
			all, err := m.RHolders(ctx)
			return len(all), err
		}, n - dead, 1000},
		{"Remaining", func(ctx context.Context) (any, error) {
			d, err := m.Remaining(ctx)
			return d > time.Hour-5*time.Minute && d <= time.Hour, err
		}, true, 1000},
		{"Inspect", func(ctx context.Context) (any, error) {
			i, err := c.Inspect(ctx, name)
			return len(i.Holders), err
		}, n - dead, 1000},
	} {
		looked, asked := timesRun(t, s, "pttl"), timesRun(t, s, "evalsha")+timesRun(t, s, "eval")
		got, err := q.ask(t.Context())
		if err != nil || got != q.want {
			t.Errorf("%s: %v, %v, want %v", q.name, got, err, q.want)
		}
		looked, asked = timesRun(t, s, "pttl")-looked, timesRun(t, s, "evalsha")+timesRun(t, s, "eval")-asked
		if looked > q.most*asked {
			t.Errorf("%s looked at %d keys in %d calls, want %d each at the most", q.name, looked, asked, q.most)
		}
	}
}

func TestManyZombiesAreSweptInBoundedSteps(t *testing.T) {
	s := redistest.Server(t)
	crowd(t, s.Admin(), 20_000, 20_000)
	s.Admin().ConfigResetStat(t.Context())
	leave(t, must(t)(client(t, s.Client(t)).RWMutex(name).Lock(t.Context())))
	if tries := timesRun(t, s, "evalsha"); tries < 10 {
		t.Errorf("%d runs of scripts swept 20 000", tries)
	}
}
