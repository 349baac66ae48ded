// The list of waiters, where they are very many: it is asked for some at a time.

package fairlock_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

func waiterID(i int) string { return fmt.Sprintf("33333333-3333-3333-3333-333333333333:%d", i) }

// crowd makes a queue of the i-th waiters from one to another; the place of each fifth is
// not kept any more.
func crowd(t testing.TB, rdb redis.UniversalClient, now time.Time, from, to int) {
	t.Helper()
	for ; from < to; from += 5_000 {
		pipe := rdb.Pipeline()
		for i := from; i < min(from+5_000, to); i++ {
			kept := now.Add(time.Hour)
			if i%5 == 0 {
				kept = now.Add(-time.Second)
			}
			pipe.ZAdd(t.Context(), queueKey, redis.Z{Member: waiterID(i), Score: 1.7e15 + float64(i*7)})
			pipe.ZAdd(t.Context(), aliveKey, redis.Z{Member: waiterID(i), Score: float64(kept.UnixMilli())})
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// wantInOrder fails the test unless the list has these waiters, in order and once each,
// and beside them at the most what others may be in it.
func wantInOrder(t *testing.T, got []lease.Owner, want, others func(i int) bool, n int) {
	t.Helper()
	last, found := -1, 0
	for _, o := range got {
		_, id, _ := strings.Cut(o.String(), ":")
		i, _ := strconv.Atoi(id)
		if i <= last || !want(i) && !others(i) {
			t.Fatalf("%d is in the list, after %d", i, last)
		}
		if last = i; want(i) {
			found++
		}
	}
	if found != n {
		t.Errorf("%d waiters are in the list, want %d", found, n)
	}
}

func none(int) bool { return false }

func TestWaitersAreListedSomeAtATime(t *testing.T) {
	s := redistest.Server(t)
	crowd(t, s.Admin(), time.Now(), 1, 2049) // eight pages to the last place
	c := holdfast.New(s.Client(t))
	defer c.Close()
	run := func(command string) int {
		stats := s.Admin().Info(t.Context(), "commandstats").Val()
		n := 0
		for _, found := range regexp.MustCompile(`cmdstat_`+command+`:calls=(\d+)`).FindAllStringSubmatch(stats, -1) {
			calls, _ := strconv.Atoi(found[1])
			n += calls
		}
		return n
	}
	looked, asked := run("zscore"), run("(?:evalsha|eval)")
	got, err := c.FairMutex(name).Waiters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if looked, asked = run("zscore")-looked, run("(?:evalsha|eval)")-asked; looked > 256*asked {
		t.Errorf("%d places in %d calls", looked, asked)
	}
	wantInOrder(t, got, func(i int) bool { return i%5 != 0 }, none, 2048-2048/5)
}

func TestAWaiterThatStaysIsListedThoughOthersComeAndGo(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		if _, err := p.Waiters(t.Context()); err != nil { // the script is loaded
			t.Fatal(err)
		}
		crowd(t, w.rdb, time.Now(), 1, 1000)
		pages := 0
		p.net.OnCommand(func(cmd redistest.Command) redistest.Fault {
			if strings.HasPrefix(cmd.Name, "EVAL") {
				if pages++; pages == 2 { // the first 400 go, and some come
					gone := make([]any, 400)
					for i := range gone {
						gone[i] = waiterID(i + 1)
					}
					w.rdb.ZRem(t.Context(), queueKey, gone...)
					w.rdb.ZRem(t.Context(), aliveKey, gone...)
					crowd(t, w.rdb, time.Now(), 1000, 1010)
				}
			}
			return redistest.Pass
		})
		got, err := p.Waiters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.net.OnCommand(nil)
		stay := func(i int) bool { return i > 400 && i < 1000 && i%5 != 0 }
		wantInOrder(t, got, stay, func(i int) bool { return i <= 400 || i >= 1000 }, 480)
		if pages != 4 && pages != 5 {
			t.Errorf("%d pages", pages)
		}
		if !slices.ContainsFunc(got, func(o lease.Owner) bool { return strings.HasSuffix(o.String(), ":1009") }) {
			t.Error("a waiter that came before the end is not listed")
		}
		w.rdb.Del(t.Context(), queueKey, aliveKey)
	})
}
