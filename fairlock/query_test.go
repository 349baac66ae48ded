// These tests are about the list of very many waiters: the list is read in parts.

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
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

func waiterID(i int) string { return fmt.Sprintf("33333333-3333-3333-3333-333333333333:%d", i) }

// crowd puts the waiters with the numbers from to to-1 into a queue. The place of every fifth
// waiter is no longer kept.
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

// wantInOrder fails the test unless the list has exactly n of the waiters that want accepts, in
// order and once each. Beside them the list may have only waiters that others accepts.
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
	crowd(t, s.Admin(), time.Now(), 1, 2049) // eight pages up to the last place
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
	play(t, func(t *testing.T, w *fairWorld) {
		p := w.process()
		if _, err := p.Waiters(t.Context()); err != nil { // this loads the script
			t.Fatal(err)
		}
		crowd(t, w.RDB, time.Now(), 1, 1000)
		pages := 0
		p.Net.OnCommand(func(cmd redistest.Command) redistest.Fault {
			if strings.HasPrefix(cmd.Name, "EVAL") {
				if pages++; pages == 2 { // the first 400 waiters go, and some others come
					gone := make([]any, 400)
					for i := range gone {
						gone[i] = waiterID(i + 1)
					}
					w.RDB.ZRem(t.Context(), queueKey, gone...)
					w.RDB.ZRem(t.Context(), aliveKey, gone...)
					crowd(t, w.RDB, time.Now(), 1000, 1010)
				}
			}
			return redistest.Pass
		})
		got, err := p.Waiters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.Net.OnCommand(nil)
		stay := func(i int) bool { return i > 400 && i < 1000 && i%5 != 0 }
		wantInOrder(t, got, stay, func(i int) bool { return i <= 400 || i >= 1000 }, 480)
		if pages != 4 && pages != 5 {
			t.Errorf("%d pages", pages)
		}
		if !slices.ContainsFunc(got, func(o lease.Owner) bool { return strings.HasSuffix(o.String(), ":1009") }) {
			t.Error("a waiter that came before the end is not listed")
		}
		w.RDB.Del(t.Context(), queueKey, aliveKey)
	})
}
