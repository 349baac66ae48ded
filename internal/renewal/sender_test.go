package renewal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// together schedules one renewal for each key, all at once, a second from now.
func together(s *Scheduler, keys ...string) []*fakeTask {
	tasks := make([]*fakeTask, len(keys))
	at := time.Now().Add(time.Second)
	for i, key := range keys {
		tasks[i] = &fakeTask{key: key, tick: renewOnce}
		s.Schedule(tasks[i], at)
	}
	return tasks
}

// However tasks fall due, for whichever server and with whichever lease, each is answered once. It is
// sent to its own server, beside tries of its own length and within the shortest of them, or it fails
// alone if its server is not found. Only a server that is not known is asked for. Streams are given up
// and begun again all the time, and nothing is left of them.
func TestEachTaskIsSentOnceToItsServer(t *testing.T) {
	errDown := errors.New("cluster is down")
	for seed := range uint64(30) {
		play(t, func(t *testing.T, s *Scheduler, sender *fakeSender) {
			r := rand.New(rand.NewPCG(seed, 0))
			var mu sync.Mutex
			answers := make(map[Task]int)
			roundTrip := time.Duration(r.IntN(40)) * time.Millisecond
			sender.known = func(key string) string {
				if key == "found" || key == "lost" {
					return ""
				}
				return key
			}
			sender.node = func(_ context.Context, key string) (string, error) {
				time.Sleep(roundTrip)
				if key == "lost" {
					return "", errDown
				}
				return "found", nil
			}
			sender.send = func(ctx context.Context, addr string, batch []Task, _ int) {
				ends, _ := ctx.Deadline()
				bound := time.Until(ends)
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
				if most >= 2*least || bound < least {
					t.Errorf("seed %d: tries of %v and %v in one batch, which has %v", seed, least, most, bound)
				}
			}
			sender.fail = func(task Task, err error) {
				mu.Lock()
				defer mu.Unlock()
				if answers[task]++; task.Key() != "lost" || !errors.Is(err, errDown) {
					t.Errorf("seed %d: a task of %q failed: %v", seed, task.Key(), err)
				}
			}
			start := time.Now()
			for i := range 2000 {
				key := fmt.Sprintf("server %d", r.IntN(3))
				if r.IntN(10) == 0 {
					key = []string{"found", "lost"}[r.IntN(2)]
				}
				try := 16 * time.Millisecond << r.IntN(8)
				try += time.Duration(r.Int64N(int64(try)))
				at := start.Add(time.Duration(i/200)*time.Second + time.Duration(r.IntN(200))*time.Millisecond)
				s.Schedule(&fakeTask{key: key, tick: renewOnce, timeout: try, ends: at.Add(4 * try)}, at)
			}
			pass(time.Hour)
			redistest.Equal(t, len(answers), 2000, "%d of 2000 tasks were answered (seed %d)", seed)
			for _, n := range answers {
				if n != 1 {
					t.Fatalf("seed %d: a task was answered %d times", seed, n)
				}
			}
			s.out.mu.Lock()
			defer s.out.mu.Unlock()
			if s.out.routers != 0 || s.out.free != 0 || len(s.out.streams) != 0 {
				t.Errorf("seed %d: %d routers, %d free, %d streams are left", seed, s.out.routers, s.out.free, len(s.out.streams))
			}
		})
	}
}

// If a round trip takes longer than a short lease can wait, the long leases that are due at the same time are
// still renewed, and the short ones do not wait for those.
func TestAShortLeaseFailsNoLongOne(t *testing.T) {
	play(t, func(t *testing.T, s *Scheduler, r *fakeSender) {
		const roundTrip = 20 * time.Millisecond
		var renewed, failed atomic.Int32
		at := time.Now().Add(time.Second)
		r.known = func(string) string { return "a" }
		r.send = func(ctx context.Context, _ string, batch []Task, _ int) {
			if late := time.Since(at); late > 0 {
				t.Errorf("%d were sent %v late", len(batch), late)
			}
			select {
			case <-time.After(roundTrip):
				renewed.Add(int32(len(batch)))
			case <-ctx.Done():
				failed.Add(int32(len(batch)))
			}
		}
		for i := range 30 {
			task := &fakeTask{key: fmt.Sprint(i), tick: renewOnce, timeout: 5 * time.Second}
			if i%10 == 7 {
				task.timeout = 16 * time.Millisecond
			}
			s.Schedule(task, at)
		}
		pass(time.Minute)
		if renewed.Load() != 27 || failed.Load() != 3 {
			t.Errorf("%d renewed and %d failed, want 27 and 3", renewed.Load(), failed.Load())
		}
	})
}

// noting has s note the keys of what it is sent, with that round trip.
func (s *fakeSender) noting(roundTrip time.Duration) (sent *[]string) {
	sent = new([]string)
	s.known = func(string) string { return "a" }
	s.send = func(_ context.Context, _ string, batch []Task, _ int) {
		for _, task := range batch {
			*sent = append(*sent, task.Key())
		}
		time.Sleep(roundTrip)
	}
	return sent
}

// What ends first is sent first, whenever it was due.
func TestBatchesGoOutInOrderOfDeadlines(t *testing.T) {
	play(t, func(t *testing.T, s *Scheduler, r *fakeSender) {
		sent := r.noting(2 * time.Second) // so that all of the others wait
		start := time.Now()
		s.Schedule(&fakeTask{key: "first", tick: renewOnce, ends: start.Add(time.Hour)}, start.Add(Resolution))
		for i := range 300 {
			task := &fakeTask{key: fmt.Sprintf("%03d", i), tick: renewOnce, ends: start.Add(time.Duration(60+i) * time.Second)}
			s.Schedule(task, start.Add(time.Duration(302-i)*Resolution))
		}
		pass(time.Minute)
		if got := *sent; len(got) != 301 || got[0] != "first" || !slices.IsSorted(got[1:]) {
			t.Errorf("%d tasks sent, in the order %v", len(got), got)
		}
	})
}

// What is due at once goes to a server that keeps up in small batches, one after the other. A server that is far away
// answers few batches a second. What waits goes out in larger ones, so that most of it is sent within a try.
func TestWhatIsDueAtOnceGoesOutInBatches(t *testing.T) {
	for _, tc := range []struct {
		what              string
		roundTrip         time.Duration
		locks             int
		atATime, ofAtMost int
		within            time.Duration
	}{
		{"a server that keeps up", time.Millisecond, 10_000, 1, usualBatch, time.Second},
		{"a server that is far away", 50 * time.Millisecond, 100_000, maxSenders, MaxBatch, 6 * time.Second},
	} {
		play(t, func(t *testing.T, s *Scheduler, r *fakeSender) {
			var mu sync.Mutex
			var sent, batches, underWay, most, largest int
			r.known = func(string) string { return "a" }
			r.send = func(_ context.Context, _ string, batch []Task, _ int) {
				mu.Lock()
				batches++
				underWay++
				most, largest = max(most, underWay), max(largest, len(batch))
				mu.Unlock()
				time.Sleep(tc.roundTrip)
				mu.Lock()
				defer mu.Unlock()
				sent += len(batch)
				underWay--
			}
			at := time.Now().Add(time.Second)
			for range tc.locks {
				s.Schedule(&fakeTask{tick: renewOnce, ends: at.Add(20 * time.Second)}, at)
			}
			pass(time.Until(at) + tc.within)
			if sent != tc.locks || batches > sent/usualBatch+5 || most > tc.atATime || largest > tc.ofAtMost {
				t.Errorf("%s: %d of %d sent within %v, in %d batches, %d at a time, the largest of %d",
					tc.what, sent, tc.locks, tc.within, batches, most, largest)
			}
		})
	}
}

// If more is due than can be sent in time, what can still be kept goes before what cannot.
func TestWhatCannotBeKeptAnyMoreLetsTheOthersGoFirst(t *testing.T) {
	play(t, func(t *testing.T, s *Scheduler, r *fakeSender) {
		const roundTrip = 100 * time.Millisecond
		sent := r.noting(roundTrip)
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
		pass(time.Minute)
		if first := slices.Index(*sent, "late"); len(*sent) != 10*usualBatch || first < 9*usualBatch-10 {
			t.Errorf("%d tasks sent; one that could not be kept was number %d", len(*sent), first)
		}
	})
}

// What is slow delays no other: neither a server that does not answer nor one that cannot be found. It
// fails within two of its tries, or two more if it had to wait. What waits for a server that does not
// answer goes out beside the first batch once that has taken a try.
func TestWhatIsSlowDelaysNoOther(t *testing.T) {
	for what, tc := range map[string]struct {
		slow   int  // tasks of the slow server
		frozen bool // it is found, and does not answer
		known  bool // the other servers need not be looked for
	}{
		"a server":              {slow: 250, frozen: true},
		"a lookup":              {slow: 1},
		"all lookups but one":   {slow: maxRouters - 1},
		"as many as take turns": {slow: 2 * maxRouters, known: true},
	} {
		play(t, func(t *testing.T, s *Scheduler, r *fakeSender) {
			const try, due = 5 * time.Second, time.Second
			start := time.Now()
			var mu sync.Mutex
			answered := make(map[string][]time.Duration)
			answer := func(key string, n int) {
				mu.Lock()
				defer mu.Unlock()
				answered[key] = append(answered[key], slices.Repeat([]time.Duration{time.Since(start)}, n)...)
			}
			r.known = func(key string) string {
				if tc.known && key != "slow" {
					return key
				}
				return ""
			}
			var looking atomic.Int32
			r.node = func(ctx context.Context, key string) (string, error) {
				defer looking.Add(-1)
				if n := looking.Add(1); n > maxRouters || tc.known && key != "slow" {
					t.Errorf("%s: asked for %s, %d lookups at once", what, key, n)
				}
				if key == "slow" && !tc.frozen {
					<-ctx.Done()
					return "", ctx.Err()
				}
				return key, nil
			}
			r.send = func(ctx context.Context, node string, batch []Task, _ int) {
				if node == "slow" {
					<-ctx.Done()
				}
				answer(node, len(batch))
			}
			r.fail = func(task Task, err error) {
				if answer(task.Key(), 1); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", what, err)
				}
			}
			together(s, append(slices.Repeat([]string{"slow"}, tc.slow), slices.Repeat([]string{"a", "b"}, 250)...)...)
			pass(time.Minute)
			for key, want := range map[string]struct {
				n        int
				from, to time.Duration
			}{
				"a": {250, due - Resolution, due}, "b": {250, due - Resolution, due},
				"slow": {tc.slow, due + try - 2*Resolution, due + 4*try},
			} {
				if got := answered[key]; len(got) != want.n || slices.Min(got) < want.from || slices.Max(got) > want.to {
					t.Errorf("%s: %d of %s were answered, within %v to %v", what, len(got), key, slices.Min(got), slices.Max(got))
				}
			}
		})
	}
}

// Calls of Node within one Resolution share a context, which is never longer than the task's try.
func TestALookupIsBoundByTheTaskTimeout(t *testing.T) {
	play(t, func(t *testing.T, _ *Scheduler, _ *fakeSender) {
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

// Close ends a Send or a lookup that hangs, and waits for it. What was not sent fails.
func TestCloseEndsWhatHangs(t *testing.T) {
	for _, lookup := range []bool{false, true} {
		play(t, func(t *testing.T, s *Scheduler, r *fakeSender) {
			var sent, failed atomic.Int32
			r.node = func(ctx context.Context, key string) (string, error) {
				if !lookup {
					return key, nil
				}
				<-ctx.Done()
				return "", context.Cause(ctx)
			}
			r.send = func(ctx context.Context, _ string, batch []Task, _ int) {
				sent.Add(int32(len(batch)))
				<-ctx.Done()
				time.Sleep(time.Second) // Close waits for this sleep too
				if !errors.Is(context.Cause(ctx), ErrClosed) {
					t.Errorf("ended by %v", context.Cause(ctx))
				}
			}
			r.fail = func(_ Task, err error) {
				if failed.Add(1); !errors.Is(err, ErrClosed) {
					t.Errorf("failed with %v", err)
				}
			}
			together(s, slices.Repeat([]string{"a"}, 450)...)
			pass(time.Second)
			began, want := time.Now(), time.Second
			if lookup {
				want = 0
			}
			s.Close()
			redistest.Equal(t, time.Since(began), want, "Close took %v, want %v", want)
			if sent.Load()+failed.Load() != 450 || sent.Load() > MaxBatch || lookup != (sent.Load() == 0) {
				t.Errorf("%d sent, %d failed of 450", sent.Load(), failed.Load())
			}
		})
	}
}
