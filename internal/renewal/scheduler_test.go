package renewal

import (
	"context"
	"math"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Whatever the periods, each call comes less than Resolution before its time and never after it, so
// calls come in the order of their times.
func TestTasksAreCalledInTimeForHours(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	play(t, func(t *testing.T, s *Scheduler, _ *fakeSender) {
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
		pass(hours)
		mu.Lock()
		defer mu.Unlock()
		for i, n := range fired {
			if want := int(hours / periods[i]); n != want && n != want+1 { // +1: just before the end
				t.Errorf("task %d, every %v, was called %d times, want %d", i, periods[i], n, want)
			}
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
	play(t, func(t *testing.T, s *Scheduler, _ *fakeSender) {
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
	play(t, func(t *testing.T, s *Scheduler, _ *fakeSender) {
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

// A task that was removed before its time, be it by a task that is due at the same time, is not called.
func TestRemoveBeforeItsTime(t *testing.T) {
	play(t, func(t *testing.T, s *Scheduler, _ *fakeSender) {
		removed, second := newCalls(never), newCalls(never)
		first := newCalls(func(int32, time.Time) (time.Time, bool) {
			s.Remove(second)
			return time.Time{}, false
		})
		s.Remove(removed) // never scheduled
		at := time.Now().Add(time.Second)
		for _, c := range []*calls{first, second, removed} {
			s.Schedule(c, at)
		}
		s.Remove(removed)
		s.Remove(removed)
		time.Sleep(time.Hour)
		first.check(t, 1, 0)
		second.check(t, 0, 0)
		removed.check(t, 0, 0)
	})
}

// The answer of a Tick that is running counts only if no other call for the task came in the meantime,
// be it from that Tick itself. The renewal for which it asks is handed to Send in any case: Send knows
// whether it is wanted.
func TestWhatIsDoneWhileTickRuns(t *testing.T) {
	later := func(s *Scheduler, c *calls) { s.Schedule(c, time.Now().Add(2*time.Minute)) }
	for what, tc := range map[string]struct {
		act   func(s *Scheduler, c *calls)
		after int32 // ticks a minute later
	}{
		"removed":                 {func(s *Scheduler, c *calls) { s.Remove(c) }, 1},
		"removed, then scheduled": {func(s *Scheduler, c *calls) { s.Remove(c); later(s, c) }, 1},
		"scheduled":               {later, 1},
		"scheduled, then removed": {func(s *Scheduler, c *calls) { s.Schedule(c, time.Now()); s.Remove(c) }, 1},
		"another was removed":     {func(s *Scheduler, _ *calls) { s.Remove(newCalls(never)) }, 2},
	} {
		for _, own := range []bool{false, true} {
			play(t, func(t *testing.T, s *Scheduler, r *fakeSender) {
				sent := 0
				r.send = func(_ context.Context, _ string, batch []Task, _ int) { sent += len(batch) }
				proceed := make(chan struct{})
				var c *calls
				c = newCalls(func(n int32, now time.Time) (time.Time, bool) {
					if n > 1 {
						return time.Time{}, false
					}
					if <-proceed; own {
						tc.act(s, c)
					}
					return now.Add(time.Second), true
				})
				s.Schedule(c, time.Now())
				synctest.Wait()
				if !own {
					tc.act(s, c)
				}
				close(proceed)
				pass(time.Minute)
				if n := c.ticks.Load(); n != tc.after || sent != 1 {
					t.Errorf("%s, by its own Tick: %v: %d ticks, want %d; sent %d times", what, own, n, tc.after, sent)
				}
			})
		}
	}
}

func TestSuspectAsksEveryTaskOnce(t *testing.T) {
	play(t, func(t *testing.T, s *Scheduler, _ *fakeSender) {
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
		s.recall(time.Now(), true)
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

// Doubt asks the tasks that it concerns, soon, and no other is asked before its time. What comes within a
// second of that waits for a second.
func TestDoubtAsksTheTasksThatItConcerns(t *testing.T) {
	play(t, func(t *testing.T, s *Scheduler, _ *fakeSender) {
		doubt := func(about string) { s.Doubt(about, func(key string) bool { return key == about }) }
		doubt("a") // nothing is there to be doubted
		all := map[string]*calls{"a": nil, "b": nil, "c": nil}
		for key := range all {
			all[key] = newCalls(func(_ int32, now time.Time) (time.Time, bool) { return now.Add(time.Hour), false })
			all[key].key = key
			s.Schedule(all[key], time.Now().Add(time.Minute))
		}
		doubt("a")
		time.Sleep(clockWatch + Resolution)
		doubt("b")
		doubt("c")
		s.Schedule(all["c"], time.Now().Add(2*time.Minute))
		time.Sleep(doubtEvery - 2*clockWatch)
		for key, suspects := range map[string]int32{"a": 1, "b": 0, "c": 0} {
			all[key].check(t, 0, suspects)
		}
		time.Sleep(2 * clockWatch)
		for _, c := range all {
			c.check(t, 0, 1)
		}
		doubt("nobody")
		time.Sleep(time.Hour + 2*time.Second) // each is asked at the time that it has answered with
		for _, c := range all {
			c.check(t, 1, 1)
		}
	})
}

// With nothing to do the goroutine does not wake up. A lock that is taken and released over and over leaves
// the wheel empty each time, and does not wake it either.
func TestAnEmptySchedulerDoesNotWakeUp(t *testing.T) {
	play(t, func(t *testing.T, s *Scheduler, _ *fakeSender) {
		c := newCalls(never)
		for n := range int32(2) { // the second time, this wakes the goroutine
			s.Schedule(c, time.Now().Add(time.Second))
			time.Sleep(time.Minute)
			c.check(t, n+1, 0)
			if until, ok := s.plan(); ok {
				t.Errorf("wakes up at %v with nothing to do", until)
			}
		}
		woken := 0
		for range 1000 {
			s.Schedule(c, time.Now().Add(time.Minute))
			s.mu.Lock()
			if s.planned == math.MinInt64 {
				woken++
			}
			s.mu.Unlock()
			s.Remove(c)
			pass(time.Millisecond) // if it has just woken of its own accord, it sleeps again
		}
		if woken > 2 { // once as it begins, and once more
			t.Errorf("woken %d times by 1000 tasks in a second", woken)
		}
	})
}

// Close may come before the first task, twice, and at once. Then nothing is called any more.
func TestClose(t *testing.T) {
	for _, used := range []bool{false, true} {
		play(t, func(t *testing.T, s *Scheduler, _ *fakeSender) {
			c := newCalls(never)
			if used {
				s.Schedule(c, time.Now().Add(time.Second))
			}
			var wg sync.WaitGroup
			wg.Go(s.Close)
			wg.Go(s.Close)
			wg.Wait()
			s.Remove(c)
			s.Schedule(c, time.Now())
			time.Sleep(time.Hour)
			c.check(t, 0, 0)
		})
	}
}

func TestCloseWaitsForATick(t *testing.T) {
	play(t, func(t *testing.T, s *Scheduler, _ *fakeSender) {
		s.Schedule(newCalls(func(_ int32, now time.Time) (time.Time, bool) {
			time.Sleep(time.Minute)
			return now, true
		}), time.Now())
		synctest.Wait()
		begun := time.Now()
		s.Close()
		redistest.Equal(t, time.Since(begun), time.Minute, "Close took %v, and a Tick ran for a minute more")
	})
}
