// The list of very many waiters is read in parts.

package fairlock_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func waiterID(i int) string { return fmt.Sprintf("33333333-3333-3333-3333-333333333333:%d", i) }

// crowd puts the waiters with the numbers from to to-1 into a queue. The place of every fifth
// waiter is no longer kept.
func (w *fairWorld) crowd(from, to int) {
	pipe := w.RDB.Pipeline()
	for i := from; i < to; i++ {
		kept := time.Now().Add(time.Hour)
		if i%5 == 0 {
			kept = time.Now().Add(-time.Second)
		}
		pipe.ZAdd(w.T.Context(), queueKey, redis.Z{Member: waiterID(i), Score: 1.7e15 + float64(i*7)})
		pipe.ZAdd(w.T.Context(), aliveKey, redis.Z{Member: waiterID(i), Score: float64(kept.UnixMilli())})
	}
	if _, err := pipe.Exec(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
}

// Each waiter that stays is listed, in order and once, though others come and go between two parts.
func TestWaitersAreListedSomeAtATime(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		p := w.process()
		if _, err := p.Waiters(t.Context()); err != nil { // this loads the script
			t.Fatal(err)
		}
		w.crowd(1, 1000)
		parts := 0
		p.Net.OnCommand(func(cmd redistest.Command) redistest.Fault {
			if strings.HasPrefix(cmd.Name, "EVAL") {
				if parts++; parts == 2 { // the first 400 waiters go, and some others come
					for i := range 400 {
						w.RDB.ZRem(t.Context(), queueKey, waiterID(i+1))
						w.RDB.ZRem(t.Context(), aliveKey, waiterID(i+1))
					}
					w.crowd(1000, 1010)
				}
			}
			return redistest.Pass
		})
		got, err := p.Waiters(t.Context())
		if err != nil || parts != 4 && parts != 5 {
			t.Fatalf("in %d parts: %v", parts, err)
		}
		last, stayed := 0, 0
		for _, o := range got {
			_, id, _ := strings.Cut(o.String(), ":")
			i, _ := strconv.Atoi(id)
			if stays := i > 400 && i < 1000; i <= last || stays && i%5 == 0 {
				t.Fatalf("%d is in the list, after %d", i, last)
			} else if stays {
				stayed++
			}
			last = i
		}
		if stayed != 480 || last != 1009 {
			t.Errorf("%d that stayed are in the list, want 480; the last is %d, want 1009", stayed, last)
		}
		w.RDB.Del(t.Context(), queueKey, aliveKey)
	})
}
