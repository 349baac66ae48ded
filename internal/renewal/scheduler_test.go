package renewal

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestTasksAreCalledInTimeForHours(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	redistest.Bubble(t, func(t *testing.T) {
		s := New(&fakeSender{})
		defer s.Close()

		var mu sync.Mutex
		fired := make([]int, 40)
		periods := make([]time.Duration, len(fired))
		start := time.Now()
		for i := range periods {
			periods[i] = time.Second + time.Duration(rng.Int63n(int64(time.Hour)))
			if i%4 == 0 {
				periods[i] /= 60
			}
			asked := start.Add(periods[i])
			task := &fakeTask{tick: func(now time.Time) (time.Time, bool) {
				mu.Lock()
				defer mu.Unlock()
				fired[i]++
				late := time.Since(asked)
				if late > 0 || late <= -Resolution {
					t.Errorf("task %d was called %v late", i, late)
				}
				if now.Before(asked) || time.Until(now) > Resolution {
					t.Errorf("task %d was told %v before its time, %v ahead of the clock", i, asked.Sub(now), time.Until(now))
				}
				asked = asked.Add(periods[i])
				return asked, false
			}}
			s.Schedule(task, asked)
		}
		const hours = 2 * time.Hour
		time.Sleep(hours)
		synctest.Wait()

		mu.Lock()
		defer mu.Unlock()
		for i, n := range fired {
			if want := int(hours / periods[i]); n != want && n != want+1 { // +1: just before the end
				t.Errorf("task %d, every %v, was called %d times, want %d", i, periods[i], n, want)
			}
		}
	})
}

func TestTasksAreCalledInOrderOfTheirTimes(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		s := New(&fakeSender{})
		defer s.Close()
		var got []int
		start := time.Now()
		for _, i := range rand.Perm(500) {
			task := &fakeTask{tick: func(time.Time) (time.Time, bool) {
				got = append(got, i) // only the scheduler's goroutine
				return time.Time{}, false
			}}
			s.Schedule(task, start.Add(time.Duration(i)*Resolution+Resolution/2))
		}
		time.Sleep(500 * Resolution)
		synctest.Wait()
		if len(got) != 500 || !slices.IsSorted(got) {
			t.Errorf("%d calls in the order %v", len(got), got)
		}
	})
}

// calls counts the calls to a task. The test gives the answers.
type calls struct {
	fakeTask
	ticks, suspects atomic.Int32
}

func newCalls(tick func(n int32, now time.Time) (time.Time, bool)) *calls {
	c := &calls{}
	c.fakeTask.tick = func(now time.Time) (time.Time, bool) { return tick(c.ticks.Add(1), now) }
	c.fakeTask.suspect = func(now time.Time) (time.Time, bool) { return tick(c.suspects.Add(1), now) }
	return c
}

func never(int32, time.Time) (time.Time, bool) { return time.Time{}, false }

func (c *calls) check(t *testing.T, ticks, suspects int32) {
	t.Helper()
	synctest.Wait()
	if c.ticks.Load() != ticks || c.suspects.Load() != suspects {
		t.Errorf("after %d ticks and %d suspects, want %d and %d", c.ticks.Load(), c.suspects.Load(), ticks, suspects)
	}
}

func TestScheduleMovesATask(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		s := New(&fakeSender{})
		defer s.Close()
		c := newCalls(never)

		s.Schedule(c, time.Now().Add(time.Hour))
		s.Schedule(c, time.Now().Add(time.Second)) // earlier than the goroutine is to wake up
		time.Sleep(time.Second)
		c.check(t, 1, 0)

		s.Schedule(c, time.Now().Add(time.Second))
		s.Schedule(c, time.Now().Add(time.Hour))
		time.Sleep(time.Minute)
		c.check(t, 1, 0)
		time.Sleep(time.Hour)
		c.check(t, 2, 0)

		s.Schedule(c, time.Now().Add(-time.Hour)) // this time has passed, so the task is due now
		c.check(t, 3, 0)
		time.Sleep(time.Hour)
		c.check(t, 3, 0)
	})
}

func TestAnAnswerInThePastIsTheNextStep(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		s := New(&fakeSender{})
		defer s.Close()
		greedy := newCalls(func(_ int32, now time.Time) (time.Time, bool) { return now.Add(-time.Hour), false })
		other := newCalls(never)
		s.Schedule(greedy, time.Now())
		s.Schedule(other, time.Now().Add(time.Second))
		time.Sleep(time.Second)
		other.check(t, 1, 0)
		if n, most := greedy.ticks.Load(), int32(time.Second/Resolution)+1; n > most {
			t.Errorf("called %d times in a second, want at most %d", n, most)
		}
	})
}

func TestRemove(t *testing.T) {
	soon := func(_ int32, now time.Time) (time.Time, bool) { return now.Add(time.Second), false }

	t.Run("before its time", func(t *testing.T) {
		redistest.Bubble(t, func(t *testing.T) {
			s := New(&fakeSender{})
			defer s.Close()
			c := newCalls(soon)
			s.Remove(c) // never scheduled
			s.Schedule(c, time.Now().Add(time.Second))
			s.Remove(c)
			s.Remove(c)
			time.Sleep(time.Hour)
			c.check(t, 0, 0)
		})
	})

	t.Run("by its own Tick", func(t *testing.T) {
		redistest.Bubble(t, func(t *testing.T) {
			s := New(&fakeSender{})
			defer s.Close()
			var c *calls
			c = newCalls(func(n int32, now time.Time) (time.Time, bool) {
				s.Remove(c)
				return soon(n, now)
			})
			s.Schedule(c, time.Now())
			time.Sleep(time.Hour)
			c.check(t, 1, 0)
		})
	})

	t.Run("by the Tick of a task due at the same time", func(t *testing.T) {
		redistest.Bubble(t, func(t *testing.T) {
			s := New(&fakeSender{})
			defer s.Close()
			second := newCalls(soon)
			first := newCalls(func(int32, time.Time) (time.Time, bool) {
				s.Remove(second)
				return time.Time{}, false
			})
			at := time.Now().Add(time.Second)
			s.Schedule(first, at)
			s.Schedule(second, at)
			time.Sleep(time.Hour)
			first.check(t, 1, 0)
			second.check(t, 0, 0)
		})
	})

	// The answer of a Tick that is running counts only if no other call for the task came in the
	// meantime.
	for _, tc := range []struct {
		name  string
		act   func(s *Scheduler, c *calls)
		after int32 // ticks an hour later
	}{
		{"while Tick runs", func(s *Scheduler, c *calls) { s.Remove(c) }, 1},
		{"while Tick runs, then scheduled", func(s *Scheduler, c *calls) {
			s.Remove(c)
			s.Schedule(c, time.Now().Add(2*time.Hour))
		}, 1},
		{"while Tick runs, scheduled only", func(s *Scheduler, c *calls) {
			s.Schedule(c, time.Now().Add(2*time.Hour))
		}, 1},
		{"while Tick runs, scheduled and removed", func(s *Scheduler, c *calls) {
			s.Schedule(c, time.Now())
			s.Remove(c)
		}, 1},
		{"of another task while Tick runs", func(s *Scheduler, _ *calls) { s.Remove(newCalls(never)) }, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			redistest.Bubble(t, func(t *testing.T) {
				s := New(&fakeSender{})
				defer s.Close()
				proceed := make(chan struct{})
				c := newCalls(func(n int32, now time.Time) (time.Time, bool) {
					<-proceed
					if n > 1 {
						return time.Time{}, false
					}
					return soon(n, now)
				})
				s.Schedule(c, time.Now())
				synctest.Wait()
				tc.act(s, c)
				close(proceed)
				time.Sleep(time.Hour)
				c.check(t, tc.after, 0)
			})
		})
	}
}

func TestSuspectAsksEveryTaskOnce(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		s := New(&fakeSender{})
		defer s.Close()
		all := make([]*calls, 300)
		at := time.Now().Add(time.Minute)
		for i := range all {
			all[i] = newCalls(func(_ int32, now time.Time) (time.Time, bool) { return now.Add(time.Hour), false })
			s.Schedule(all[i], at.Add(time.Duration(i)*time.Minute)) // up to many turns away
		}
		removed, moved := newCalls(never), newCalls(never)
		s.Schedule(removed, at)
		s.Schedule(moved, at)

		synctest.Wait() // the goroutine sleeps; otherwise it might ask before the next two lines
		s.recall()
		s.Remove(removed)
		s.Schedule(moved, at) // the task is about to be asked all the same
		time.Sleep(clockWatch)
		for _, c := range all {
			c.check(t, 0, 1)
		}
		removed.check(t, 0, 0)
		moved.check(t, 0, 1)

		time.Sleep(time.Hour + Resolution)
		for _, c := range all {
			c.check(t, 1, 1)
		}
		moved.check(t, 0, 1)
	})
}

func TestAnEmptySchedulerDoesNotWakeUp(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		s := New(&fakeSender{})
		defer s.Close()
		c := newCalls(never)
		s.Schedule(c, time.Now().Add(time.Second))
		time.Sleep(time.Minute)
		c.check(t, 1, 0)
		if until, ok := s.plan(); ok {
			t.Errorf("wakes up at %v with nothing to do", until)
		}
		s.Schedule(c, time.Now().Add(time.Second)) // this wakes the goroutine
		time.Sleep(time.Second)
		c.check(t, 2, 0)
	})
}

// A lock that is taken and released over and over leaves the wheel empty each time, and does not
// wake the goroutine.
func TestWhatIsBrieflyScheduledDoesNotWakeIt(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		s := New(&fakeSender{})
		defer s.Close()
		woken := 0
		for range 1000 {
			c := newCalls(never)
			s.Schedule(c, time.Now().Add(time.Minute))
			s.mu.Lock()
			if s.planned == math.MinInt64 {
				woken++
			}
			s.mu.Unlock()
			s.Remove(c)
			time.Sleep(time.Millisecond)
			synctest.Wait() // if it has just woken by itself, it sleeps again
		}
		if woken > 2 { // once as it begins, and once more
			t.Errorf("woken %d times by 1000 tasks in a second", woken)
		}
	})
}

func TestClose(t *testing.T) {
	t.Run("never started", func(t *testing.T) {
		s := New(&fakeSender{})
		s.Close()
		s.Close()
		c := newCalls(never)
		s.Schedule(c, time.Now())
		s.Remove(c)
	})

	t.Run("twice at once, then nothing is called", func(t *testing.T) {
		redistest.Bubble(t, func(t *testing.T) {
			s := New(&fakeSender{})
			c := newCalls(never)
			s.Schedule(c, time.Now().Add(time.Second))
			var wg sync.WaitGroup
			wg.Go(s.Close)
			wg.Go(s.Close)
			wg.Wait()
			s.Remove(c)
			s.Schedule(c, time.Now())
			time.Sleep(time.Hour)
			c.check(t, 0, 0)
		})
	})

	t.Run("waits for a Tick", func(t *testing.T) {
		redistest.Bubble(t, func(t *testing.T) {
			s := New(&fakeSender{})
			proceed := make(chan struct{})
			s.Schedule(newCalls(func(_ int32, now time.Time) (time.Time, bool) {
				<-proceed
				return now, true
			}), time.Now())
			synctest.Wait()
			closed := make(chan struct{})
			go func() { s.Close(); close(closed) }()
			synctest.Wait()
			select {
			case <-closed:
				t.Error("Close did not wait")
			default:
			}
			close(proceed)
			<-closed
		})
	})
}

func TestTenThousandTasksShareOneGoroutine(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		var most, sent int
		s := New(&fakeSender{
			node: func(context.Context, string) (string, error) { return "a", nil },
			send: func(_ context.Context, _ string, batch []Task, _ int) {
				most = max(most, goroutines()) // one node: one Send at a time
				sent += len(batch)
			},
		})
		tasks := make([]fakeTask, 10_000)
		at := time.Now().Add(time.Second)
		for i := range tasks {
			tasks[i].tick = renewOnce
			s.Schedule(&tasks[i], at)
		}
		synctest.Wait()
		if n := goroutines(); n != 1 {
			t.Errorf("%d goroutines hold 10 000 tasks, want 1", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := goroutines(); sent != len(tasks) || n != 1 {
			t.Errorf("%d goroutines after %d renewals, want 1 after %d", n, sent, len(tasks))
		}
		if most > 1+maxRouters+1 {
			t.Errorf("%d goroutines during the renewals", most)
		}
		s.Close()
		synctest.Wait()
		if n := goroutines(); n != 0 {
			t.Errorf("%d goroutines after Close", n)
		}
	})
}

// goroutines counts the goroutines that this package has started.
func goroutines() (n int) {
	buf := make([]byte, 1<<20)
	for stack := range bytes.SplitSeq(buf[:runtime.Stack(buf, true)], []byte("\n\n")) {
		if bytes.Contains(stack, []byte("renewal.(*Scheduler).run(")) || bytes.Contains(stack, []byte("renewal.(*outbox).")) {
			n++
		}
	}
	return n
}

// TestEveryRenewalIsAnsweredOnce lets everything happen at once and counts the answers. It runs in
// real time for the race detector's sake.
func TestEveryRenewalIsAnsweredOnce(t *testing.T) {
	type renewed struct {
		fakeTask
		waiting atomic.Bool
	}
	errLookup := errors.New("no such node")
	var asked, answered atomic.Int64
	answer := func(task Task) {
		if !task.(*renewed).waiting.Swap(false) {
			t.Error("answered, but not asked")
		}
		answered.Add(1)
	}
	s := New(&fakeSender{
		node: func(_ context.Context, key string) (string, error) {
			if key == "x" {
				return "", errLookup
			}
			return key, nil
		},
		send: func(_ context.Context, _ string, batch []Task, _ int) {
			for _, task := range batch {
				answer(task)
			}
		},
		fail: func(task Task, err error) {
			if !errors.Is(err, errLookup) && !errors.Is(err, ErrClosed) {
				t.Errorf("failed with %v", err)
			}
			answer(task)
		},
	})
	tasks := make([]renewed, 300)
	for i := range tasks {
		task := &tasks[i]
		task.key = []string{"a", "b", "c", "x"}[i%4]
		task.tick = func(now time.Time) (time.Time, bool) {
			renew := !task.waiting.Swap(true)
			if renew {
				asked.Add(1)
			}
			return now.Add(time.Duration(i) * time.Millisecond / 10), renew
		}
		task.suspect = task.tick
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewSource(int64(g)))
			for range 20_000 {
				task := &tasks[rng.Intn(len(tasks))]
				switch rng.Intn(8) {
				case 0:
					s.Remove(task)
				default:
					s.Schedule(task, time.Now().Add(time.Duration(rng.Int63n(int64(10*time.Millisecond)))))
				}
				if rng.Intn(5000) == 0 {
					s.recall()
				}
			}
		})
	}
	wg.Wait()
	s.Close()
	if asked.Load() == 0 || asked.Load() != answered.Load() {
		t.Errorf("%d renewals asked for, %d answered", asked.Load(), answered.Load())
	}
}
