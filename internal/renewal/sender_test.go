package renewal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// together schedules one renewal for each key, all at once.
func together(s *Scheduler, keys ...string) []*fakeTask {
	tasks := make([]*fakeTask, len(keys))
	at := time.Now().Add(time.Second)
	for i, key := range keys {
		tasks[i] = &fakeTask{key: key, tick: renewOnce}
		s.Schedule(tasks[i], at)
	}
	return tasks
}

func TestABurstGoesOutBatchAfterBatch(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		const roundTrip = time.Millisecond
		var inFlight atomic.Int32
		var sizes []int // one Send at a time
		seen := make(map[Task]bool)
		s := New(&fakeSender{send: func(_ context.Context, _ string, batch []Task, _ int) {
			if inFlight.Add(1) != 1 {
				t.Error("two batches on their way to one node")
			}
			sizes = append(sizes, len(batch))
			for _, task := range batch {
				seen[task] = true
			}
			time.Sleep(roundTrip)
			inFlight.Add(-1)
		}})
		defer s.Close()
		tasks := together(s, slices.Repeat([]string{"a"}, 5_000)...)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(seen) != len(tasks) {
			t.Errorf("%d tasks renewed, want %d", len(seen), len(tasks))
		}
		if slices.Max(sizes) > usualBatch {
			t.Errorf("a batch of %d", slices.Max(sizes))
		}
		if most := len(tasks)/usualBatch + 5; len(sizes) > most {
			t.Errorf("%d batches, want at most %d", len(sizes), most)
		}
	})
}

// If a round trip takes longer than a short lease can wait, the long leases that are due at the
// same time are still renewed.
func TestAShortLeaseFailsNoLongOne(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		const roundTrip = 20 * time.Millisecond
		renewed, failed := 0, 0
		s := New(&fakeSender{
			known: func(string) string { return "a" },
			send: func(ctx context.Context, _ string, batch []Task, _ int) {
				select {
				case <-time.After(roundTrip):
					renewed += len(batch)
				case <-ctx.Done():
					failed += len(batch)
				}
			},
		})
		defer s.Close()
		at := time.Now().Add(time.Second)
		for i := range 30 {
			task := &fakeTask{key: fmt.Sprint(i), tick: renewOnce, timeout: 5 * time.Second}
			if i%10 == 7 {
				task.timeout = 16 * time.Millisecond
			}
			s.Schedule(task, at)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if renewed != 27 || failed != 3 {
			t.Errorf("%d renewed and %d failed, want 27 and 3", renewed, failed)
		}
	})
}

// What ends first is sent first, whenever it was due.
func TestBatchesGoOutInOrderOfDeadlines(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		var got []string
		s := New(&fakeSender{
			node: func(context.Context, string) (string, error) { return "a", nil },
			send: func(_ context.Context, _ string, batch []Task, _ int) {
				for _, task := range batch {
					got = append(got, task.Key())
				}
				time.Sleep(2 * time.Second) // so that all of the others wait
			},
		})
		defer s.Close()
		start := time.Now()
		s.Schedule(&fakeTask{key: "first", tick: renewOnce, ends: start.Add(time.Hour)}, start.Add(Resolution))
		for i := range 300 {
			task := &fakeTask{key: fmt.Sprintf("%03d", i), tick: renewOnce, ends: start.Add(time.Duration(60+i) * time.Second)}
			s.Schedule(task, start.Add(time.Duration(302-i)*Resolution))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(got) != 301 || got[0] != "first" || !slices.IsSorted(got[1:]) {
			t.Errorf("%d tasks sent, in the order %v", len(got), got)
		}
	})
}

// A server that is far away answers few batches a second. What waits goes out in larger ones, so
// that most of it is sent within a try.
func TestAServerThatIsFarAwayIsSentLargerBatches(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		const roundTrip, locks = 50 * time.Millisecond, 100_000
		var mu sync.Mutex
		var sent, underWay, most, largest int
		s := New(&fakeSender{
			known: func(string) string { return "a" },
			send: func(_ context.Context, _ string, batch []Task, _ int) {
				mu.Lock()
				underWay++
				most, largest = max(most, underWay), max(largest, len(batch))
				mu.Unlock()
				time.Sleep(roundTrip)
				mu.Lock()
				defer mu.Unlock()
				sent += len(batch)
				underWay--
			},
		})
		defer s.Close()
		at := time.Now().Add(time.Second)
		for range locks {
			s.Schedule(&fakeTask{tick: renewOnce, ends: at.Add(20 * time.Second)}, at)
		}
		time.Sleep(time.Until(at) + 6*time.Second)
		synctest.Wait()
		if sent != locks || most > maxSenders || largest > MaxBatch {
			t.Errorf("%d of %d sent within 6 s; %d batches at a time, the largest of %d", sent, locks, most, largest)
		}
	})
}

// If more is due than can be sent in time, what can still be kept goes before what cannot.
func TestWhatCannotBeKeptAnyMoreLetsTheOthersGoFirst(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		const roundTrip = 100 * time.Millisecond
		var got []string
		s := New(&fakeSender{
			known: func(string) string { return "a" },
			send: func(_ context.Context, _ string, batch []Task, _ int) {
				for _, task := range batch {
					got = append(got, task.Key())
				}
				time.Sleep(roundTrip)
			},
		})
		defer s.Close()
		start := time.Now()
		for i := range 10 * usualBatch {
			task := &fakeTask{key: "kept", tick: renewOnce, ends: start.Add(3 * time.Second)}
			at := start.Add(2 * Resolution)
			switch {
			case i == 0: // the first Send, from which the stream learns how long one takes
				at = start.Add(Resolution)
			case i <= 10:
				task.key, task.ends = "late", start.Add(roundTrip+20*time.Millisecond)
			}
			s.Schedule(task, at)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if first := slices.Index(got, "late"); len(got) != 10*usualBatch || first < 9*usualBatch-10 {
			t.Errorf("%d tasks sent; one that could not be kept was number %d", len(got), first)
		}
	})
}

// A short lease does not wait behind a batch of long ones that is not answered.
func TestAShortLeaseDoesNotWaitForLongOnes(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var short time.Duration
		start := time.Now()
		s := New(&fakeSender{
			known: func(string) string { return "a" },
			send: func(ctx context.Context, _ string, batch []Task, _ int) {
				mu.Lock()
				if batch[0].Key() == "short" {
					short = time.Since(start)
				}
				mu.Unlock()
				<-ctx.Done()
			},
		})
		defer s.Close()
		for range 10 {
			s.Schedule(&fakeTask{key: "long", tick: renewOnce}, start.Add(Resolution))
		}
		s.Schedule(&fakeTask{key: "short", tick: renewOnce, timeout: 16 * time.Millisecond}, start.Add(4*Resolution))
		time.Sleep(time.Minute)
		synctest.Wait()
		if short > 5*Resolution {
			t.Errorf("sent after %v", short)
		}
	})
}

func TestASlowNodeDelaysNoOther(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		sent := make(map[string][]time.Duration)
		s := New(&fakeSender{send: func(ctx context.Context, node string, batch []Task, _ int) {
			if node == "frozen" {
				<-ctx.Done()
			}
			mu.Lock()
			defer mu.Unlock()
			for range batch {
				sent[node] = append(sent[node], time.Since(start))
			}
		}})
		defer s.Close()
		keys := append(slices.Repeat([]string{"frozen"}, 250), slices.Repeat([]string{"a", "b"}, 250)...)
		tasks := together(s, keys...)
		time.Sleep(time.Minute)
		synctest.Wait()

		mu.Lock()
		defer mu.Unlock()
		for _, node := range []string{"a", "b"} {
			if got := sent[node]; len(got) != 250 || slices.Max(got) > time.Second {
				t.Errorf("%s: %d tasks, the last after %v", node, len(got), slices.Max(got))
			}
		}
		// The frozen node costs each batch a try, and all that waits goes out with the second one.
		_, try := tasks[0].Urgency()
		if got := sent["frozen"]; len(got) != 250 || slices.Min(got) < try || slices.Max(got) > 2*try+2*time.Second {
			t.Errorf("frozen: %d tasks within %v to %v", len(got), slices.Min(got), slices.Max(got))
		}
	})
}

// The scheduler does not ask for a node that it knows. The tasks of that node do not wait for tasks
// with an unknown node.
func TestAKnownNodeIsNotAskedFor(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		start := time.Now()
		var asked, sent atomic.Int32
		s := New(&fakeSender{
			known: func(key string) string { return strings.TrimPrefix(key, "unknown") },
			node: func(ctx context.Context, key string) (string, error) {
				asked.Add(1)
				<-ctx.Done()
				return "", ctx.Err()
			},
			send: func(_ context.Context, _ string, batch []Task, _ int) {
				sent.Add(int32(len(batch)))
				if late := time.Since(start); late > time.Second {
					t.Errorf("sent after %v", late)
				}
			},
		})
		defer s.Close()
		together(s, append(slices.Repeat([]string{"unknown"}, 2*maxRouters), slices.Repeat([]string{"a", "b"}, 250)...)...)
		time.Sleep(time.Minute)
		synctest.Wait()
		if asked.Load() != 2*maxRouters || sent.Load() != 500 {
			t.Errorf("%d asked for, %d sent", asked.Load(), sent.Load())
		}
	})
}

func TestASlowLookupDelaysNoOther(t *testing.T) {
	for _, slow := range []int{1, maxRouters - 1} {
		t.Run(fmt.Sprint(slow), func(t *testing.T) {
			redistest.Bubble(t, func(t *testing.T) {
				start := time.Now()
				var sent, failed atomic.Int32
				s := New(&fakeSender{
					node: func(ctx context.Context, key string) (string, error) {
						if key == "slow" {
							<-ctx.Done()
							return "", ctx.Err()
						}
						return key, nil
					},
					send: func(_ context.Context, _ string, batch []Task, _ int) {
						sent.Add(int32(len(batch)))
						if late := time.Since(start); late > time.Second {
							t.Errorf("sent after %v", late)
						}
					},
					fail: func(task Task, err error) {
						failed.Add(1)
						_, try := task.Urgency()
						if took := time.Since(start) - time.Second; !errors.Is(err, context.DeadlineExceeded) || took > try {
							t.Errorf("failed after %v with %v", took, err)
						}
					},
				})
				defer s.Close()
				together(s, append(slices.Repeat([]string{"slow"}, slow), slices.Repeat([]string{"a"}, 500)...)...)
				time.Sleep(time.Minute)
				synctest.Wait()
				if sent.Load() != 500 || failed.Load() != int32(slow) {
					t.Errorf("%d sent, %d failed", sent.Load(), failed.Load())
				}
			})
		})
	}
}

// TestManySlowLookups shows that lookups beyond the limit take turns, and that all are answered.
func TestManySlowLookups(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		var waiting, most, failed atomic.Int32
		s := New(&fakeSender{
			node: func(ctx context.Context, _ string) (string, error) {
				if n := waiting.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer waiting.Add(-1)
				time.Sleep(time.Second)
				return "", errors.New("no cluster")
			},
			fail: func(Task, error) { failed.Add(1) },
		})
		defer s.Close()
		together(s, slices.Repeat([]string{"a"}, 10*maxRouters)...)
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if failed.Load() != 10*maxRouters || most.Load() != maxRouters {
			t.Errorf("%d failed, at most %d lookups at once", failed.Load(), most.Load())
		}
	})
}

func TestAFailedLookupFailsOnlyItsTask(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		errDown := errors.New("cluster is down")
		var mu sync.Mutex
		outcome := make(map[string]int)
		s := New(&fakeSender{
			node: func(_ context.Context, key string) (string, error) {
				if key == "lost" {
					return "", errDown
				}
				return "a", nil
			},
			send: func(_ context.Context, _ string, batch []Task, _ int) {
				mu.Lock()
				defer mu.Unlock()
				for _, task := range batch {
					outcome["sent "+task.Key()]++
				}
			},
			fail: func(task Task, err error) {
				mu.Lock()
				defer mu.Unlock()
				if !errors.Is(err, errDown) {
					t.Errorf("failed with %v", err)
				}
				outcome["failed "+task.Key()]++
			},
		})
		defer s.Close()
		together(s, "x", "lost", "y", "lost", "x")
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(outcome) != 3 || outcome["sent x"] != 2 || outcome["sent y"] != 1 || outcome["failed lost"] != 2 {
			t.Errorf("outcome %v", outcome)
		}
	})
}

func TestABatchIsBoundByItsShortestTry(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		var batches atomic.Int32
		s := New(&fakeSender{send: func(ctx context.Context, _ string, batch []Task, _ int) {
			var tries []time.Duration
			for _, task := range batch {
				_, try := task.Urgency()
				tries = append(tries, try)
			}
			shortest := slices.Min(tries)
			if slices.Max(tries) >= 2*shortest {
				t.Errorf("tries of %v beside tries of %v", slices.Max(tries), shortest)
			}
			began := time.Now()
			<-ctx.Done()
			if took := time.Since(began); took != shortest {
				t.Errorf("bound %v, shortest try %v", took, shortest)
			}
			batches.Add(1)
		}})
		defer s.Close()
		at := time.Now().Add(time.Second)
		for i := range 300 {
			s.Schedule(&fakeTask{timeout: time.Duration(1000-3*i) * time.Millisecond, tick: renewOnce}, at)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := batches.Load(); n < 3 {
			t.Errorf("%d batches", n)
		}
	})
}

func TestALookupIsBoundByTheTaskTimeout(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		var b bound
		defer b.end()
		for _, timeout := range []time.Duration{5 * time.Second, 5 * time.Second, time.Second, 6 * time.Second, 20 * time.Millisecond} {
			ctx := b.context(t.Context(), timeout)
			ends, ok := ctx.Deadline()
			if left := time.Until(ends); !ok || ctx.Err() != nil || left > timeout || left < timeout-Resolution {
				t.Errorf("bound by %v, want %v", left, timeout)
			}
			time.Sleep(Resolution / 2)
		}
	})
}

func TestCloseEndsAHangingSend(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		var sent, failed int // there is one node, and so one goroutine
		s := New(&fakeSender{
			send: func(ctx context.Context, _ string, batch []Task, _ int) {
				sent += len(batch)
				<-ctx.Done()
				time.Sleep(time.Second) // Close waits for this sleep too
				if !errors.Is(context.Cause(ctx), ErrClosed) {
					t.Errorf("ended by %v", context.Cause(ctx))
				}
			},
			fail: func(_ Task, err error) {
				failed++
				if !errors.Is(err, ErrClosed) {
					t.Errorf("failed with %v", err)
				}
			},
		})
		tasks := together(s, slices.Repeat([]string{"a"}, 450)...)
		time.Sleep(time.Second)
		synctest.Wait()

		began := time.Now()
		s.Close()
		if took := time.Since(began); took != time.Second {
			t.Errorf("Close took %v, want the second that Send needed", took)
		}
		if sent == 0 || sent > MaxBatch || sent+failed != len(tasks) {
			t.Errorf("%d sent, %d failed of %d", sent, failed, len(tasks))
		}
	})
}

func TestCloseEndsAHangingLookup(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		var failed atomic.Int32
		s := New(&fakeSender{
			node: func(ctx context.Context, _ string) (string, error) {
				<-ctx.Done()
				return "", context.Cause(ctx)
			},
			fail: func(_ Task, err error) {
				failed.Add(1)
				if !errors.Is(err, ErrClosed) {
					t.Errorf("failed with %v", err)
				}
			},
		})
		together(s, slices.Repeat([]string{"a"}, 450)...)
		time.Sleep(time.Second)
		synctest.Wait()
		began := time.Now()
		s.Close()
		if took := time.Since(began); took != 0 || failed.Load() != 450 {
			t.Errorf("Close took %v, %d failed", took, failed.Load())
		}
	})
}

// TestARemovedTaskIsStillAnswered removes a task while the task asks for its renewal. The task is
// still given to Send, which knows whether its answer is wanted.
func TestARemovedTaskIsStillAnswered(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		var sent atomic.Int32
		s := New(&fakeSender{send: func(_ context.Context, _ string, batch []Task, _ int) { sent.Add(int32(len(batch))) }})
		defer s.Close()
		proceed := make(chan struct{})
		c := newCalls(func(_ int32, now time.Time) (time.Time, bool) {
			<-proceed
			return now.Add(time.Second), true
		})
		s.Schedule(c, time.Now())
		synctest.Wait()
		s.Remove(c)
		close(proceed)
		time.Sleep(time.Hour)
		c.check(t, 1, 0)
		if sent.Load() != 1 {
			t.Errorf("sent %d times, want once", sent.Load())
		}
	})
}

func TestIdleGoroutinesEnd(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		s := New(&fakeSender{})
		defer s.Close()
		together(s, "a", "b", "c")
		time.Sleep(time.Minute)
		synctest.Wait()
		s.out.mu.Lock()
		defer s.out.mu.Unlock()
		if s.out.routers != 0 || s.out.free != 0 || len(s.out.streams) != 0 {
			t.Errorf("%d routers, %d free, %d streams", s.out.routers, s.out.free, len(s.out.streams))
		}
	})
}
