package renewal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// However tasks fall due, for whichever server and with whichever lease, each is sent once, to its own
// server, beside tries of its own length. Streams are given up and begun again all the time.
func TestEachTaskIsSentOnceToItsServer(t *testing.T) {
	for seed := range uint64(30) {
		redistest.Bubble(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			var mu sync.Mutex
			answers := make(map[Task]int)
			roundTrip := time.Duration(r.IntN(40)) * time.Millisecond
			s := New(&fakeSender{
				known: func(key string) string {
					if key == "found" {
						return ""
					}
					return key
				},
				node: func(context.Context, string) (string, error) {
					time.Sleep(roundTrip)
					return "found", nil
				},
				send: func(_ context.Context, addr string, batch []Task, _ int) {
					time.Sleep(roundTrip)
					mu.Lock()
					defer mu.Unlock()
					_, least := batch[0].Urgency()
					most := least
					for _, task := range batch {
						answers[task]++
						if task.Key() != addr {
							t.Errorf("seed %d: a task of %q was sent to %q", seed, task.Key(), addr)
						}
						_, try := task.Urgency()
						least, most = min(least, try), max(most, try)
					}
					if most >= 2*least {
						t.Errorf("seed %d: tries of %v and %v in one batch", seed, least, most)
					}
				},
				fail: func(_ Task, err error) {
					if !errors.Is(err, ErrClosed) {
						t.Errorf("seed %d: %v", seed, err)
					}
				},
			})
			defer s.Close()
			start := time.Now()
			for i := range 2000 {
				key := fmt.Sprintf("server %d", r.IntN(3))
				if r.IntN(10) == 0 {
					key = "found"
				}
				try := 16 * time.Millisecond << r.IntN(8)
				at := start.Add(time.Duration(i/200)*time.Second + time.Duration(r.IntN(200))*time.Millisecond)
				s.Schedule(&fakeTask{key: key, tick: renewOnce, timeout: try, ends: at.Add(4 * try)}, at)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if len(answers) != 2000 {
				t.Errorf("seed %d: %d of 2000 tasks were sent", seed, len(answers))
			}
			for _, n := range answers {
				if n != 1 {
					t.Fatalf("seed %d: a task was sent %d times", seed, n)
				}
			}
		})
	}
}
