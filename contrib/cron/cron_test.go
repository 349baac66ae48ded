package holdcron_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast"
	holdcron "github.com/holdfast-go/holdfast/contrib/cron"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// bubble runs a test in virtual time, with a server. The time begins at midnight UTC.
func bubble(t *testing.T, test func(t *testing.T, s *holdfasttest.Server)) {
	synctest.Test(t, func(t *testing.T) { test(t, holdfasttest.New(t)) })
}

func parse(t *testing.T, spec string) cron.Schedule {
	t.Helper()
	schedule, err := cron.ParseStandard(spec)
	if err != nil {
		t.Fatal(err)
	}
	return schedule
}

// start runs a cron with one job, until the test ends or stop is called, which waits for the job.
func start(t *testing.T, schedule cron.Schedule, job cron.Job) (stop func()) {
	c := cron.New(cron.WithLocation(time.UTC), cron.WithLogger(cron.DiscardLogger))
	c.Schedule(schedule, job)
	c.Start()
	stop = func() { <-c.Stop().Done() }
	t.Cleanup(stop)
	return stop
}

// record is a cron.Logger.
type record struct {
	mu     sync.Mutex
	infos  int
	errors []error
}

func (r *record) Info(string, ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.infos++
}

func (r *record) Error(err error, _ string, _ ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, err)
}

// take returns what was told since the last call.
func (r *record) take() (infos int, errors []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	infos, errors = r.infos, r.errors
	r.infos, r.errors = 0, nil
	return infos, errors
}

func (r *record) want(t *testing.T, infos int, errs ...error) {
	t.Helper()
	gotInfos, got := r.take()
	if gotInfos != infos || !slices.EqualFunc(got, errs, errors.Is) {
		t.Errorf("logged %d skips and %v, want %d and %v", gotInfos, got, infos, errs)
	}
}

// skewed is a schedule as a replica sees it whose clock is ahead by so much.
type skewed struct {
	cron.Schedule
	ahead time.Duration
}

func (s skewed) Next(t time.Time) time.Time { return s.Schedule.Next(t.Add(s.ahead)).Add(-s.ahead) }

func (s skewed) at(now time.Time) time.Time {
	return holdcron.Latest(s.Schedule, time.UTC)(now.Add(s.ahead))
}

func TestThreeSchedulersWhoseClocksDifferRunEachTickOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		var mu sync.Mutex
		runs := make(map[time.Time]int)
		job := holdcron.JobFunc(func(ctx context.Context) {
			at, ok := holdcron.TickFrom(ctx)
			if !ok {
				t.Error("a run under Once does not know its tick")
			}
			mu.Lock()
			defer mu.Unlock()
			runs[at]++
		})
		schedule, log := parse(t, "* * * * *"), &record{}
		for _, ahead := range []time.Duration{-25 * time.Second, 0, 20 * time.Second} {
			clock := skewed{schedule, ahead}
			ticks := holdcron.Ticks{Name: "report", At: clock.at, Keep: 2 * time.Minute}
			stop := start(t, clock, holdcron.Once(t.Context(), s.Client(), ticks, log)(job))
			if ahead > 0 { // this one wins all ticks, until it is gone
				time.AfterFunc(30*time.Minute, stop)
			}
		}
		began := time.Now()
		time.Sleep(time.Hour + 30*time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		for i := range 61 { // from that of midnight, which the slow clock has still before it
			if tick := began.Add(time.Duration(i) * time.Minute).UTC(); runs[tick] != 1 {
				t.Errorf("the tick of %v has run %d times", tick, runs[tick])
			}
		}
		if len(runs) != 61 {
			t.Errorf("%d ticks have run, want 61", len(runs))
		}
		if _, errs := log.take(); errs != nil {
			t.Error(errs)
		}
	})
}

func TestATickIsSkippedWhileRedisIsDown(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		runs, log, schedule := make(chan time.Time, 10), &record{}, parse(t, "* * * * *")
		ticks := holdcron.Ticks{Name: "report", At: holdcron.Latest(schedule, time.UTC)}
		began := time.Now()
		start(t, schedule, holdcron.Once(t.Context(), s.Client(), ticks, log)(holdcron.JobFunc(func(context.Context) {
			runs <- time.Now()
		})))
		s.Down()
		time.Sleep(90 * time.Second)
		log.want(t, 0, holdfast.ErrUnavailable)
		s.Up()
		if at := <-runs; at.Sub(began) < 2*time.Minute || at.Sub(began) > 2*time.Minute+5*time.Second {
			t.Errorf("the first run was after %v, want 2m", at.Sub(began))
		}
	})
}

func TestWithoutATickNothingRuns(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		log := &record{}
		ticks := holdcron.Ticks{Name: "report", At: func(time.Time) time.Time { return time.Time{} }}
		holdcron.Once(t.Context(), s.Client(), ticks, log)(cron.FuncJob(func() { t.Error("it ran") })).Run()
		if _, errs := log.take(); len(errs) != 1 {
			t.Errorf("logged %v", errs)
		}
	})
}

func TestWithoutItsLockTheJobIsSkipped(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		release := s.HoldElsewhere("report")
		runs, log := 0, &record{}
		job := holdcron.Locked(t.Context(), s.Client().Mutex("report"), log)(cron.FuncJob(func() { runs++ }))
		stop := start(t, parse(t, "* * * * *"), job)
		time.Sleep(150 * time.Second)
		log.want(t, 2)
		release()
		s.Down()
		time.Sleep(time.Minute)
		log.want(t, 0, holdfast.ErrUnavailable)
		s.Up()
		time.Sleep(time.Minute)
		stop()
		log.want(t, 0)
		if runs != 1 {
			t.Errorf("%d runs, want 1", runs)
		}
		s.RequireNoLeases()
	})
}

// The context of a run ends with its lock, also through a chain, and the logger is told.
func TestARunWhoseLockIsLostIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		client, log, told := s.Client(), &record{}, make(chan error, 1)
		mutex := client.Mutex("report")
		ticks := holdcron.Ticks{Name: "report", At: holdcron.Latest(parse(t, "* * * * *"), time.UTC)}
		stop := start(t, parse(t, "* * * * *"), cron.NewChain(
			holdcron.Once(t.Context(), client, ticks, log),
			holdcron.Locked(t.Context(), mutex, log),
		).Then(holdcron.JobFunc(func(ctx context.Context) {
			if _, ok := holdcron.TickFrom(ctx); !ok {
				t.Error("the tick did not come through")
			}
			if _, ok := holdfast.LeaseFrom(ctx, mutex); !ok {
				t.Error("no lease")
			}
			s.Expire("report") // found out at the next renewal
			<-ctx.Done()
			told <- context.Cause(ctx)
		})))
		if err := <-told; !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("the cause is %v", err)
		}
		stop()
		log.want(t, 0, holdfast.ErrLost)
	})
}

// A plain job cannot be told: it goes on, and another replica begins.
func TestAPlainJobGoesOnAfterALoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		log, other := &record{}, s.Client()
		holdcron.Locked(t.Context(), s.Client().Mutex("report"), log)(cron.FuncJob(func() {
			s.Expire("report")
			holdcron.Locked(t.Context(), other.Mutex("report"), log)(cron.FuncJob(func() {
				time.Sleep(time.Minute)
			})).Run()
			log.want(t, 0)
		})).Run()
		log.want(t, 0, holdfast.ErrLost)
	})
}

func TestOptionsOfDoGoThrough(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		runs, log := 0, &record{}
		locked := holdcron.Locked(t.Context(), s.Client().Mutex("report"), log, holdfast.AtLeast(time.Minute))
		job := locked(cron.FuncJob(func() { runs++ }))
		job.Run()
		job.Run()
		log.want(t, 1)
		waiting := holdcron.Locked(t.Context(), s.Client().Mutex("report"), log, holdfast.WaitAtMost(2*time.Minute))
		waiting(job).Run() // waits, and then the job finds the lock held by its wrapper
		log.want(t, 1)
		if runs != 1 {
			t.Errorf("%d runs, want 1", runs)
		}
	})
}

func TestAJobThatPanicsLeavesNoLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		log := &record{}
		cron.NewChain(
			cron.Recover(log),
			holdcron.Locked(t.Context(), s.Client().Mutex("report"), cron.DiscardLogger),
		).Then(cron.FuncJob(func() { panic("no") })).Run()
		if _, errs := log.take(); len(errs) != 1 {
			t.Errorf("logged %v", errs)
		}
		s.RequireNoLeases()
	})
}

func TestLatest(t *testing.T) {
	berlin := time.FixedZone("Berlin", 3600)
	now := time.Date(2024, 5, 15, 10, 7, 30, 500, time.UTC) // a Wednesday
	for _, tc := range []struct {
		spec     string
		location *time.Location
		want     time.Time
	}{
		{"* * * * *", time.UTC, time.Date(2024, 5, 15, 10, 7, 0, 0, time.UTC)},
		{"*/5 * * * *", time.UTC, time.Date(2024, 5, 15, 10, 5, 0, 0, time.UTC)},
		{"@daily", time.UTC, time.Date(2024, 5, 15, 0, 0, 0, 0, time.UTC)},
		{"@daily", berlin, time.Date(2024, 5, 14, 23, 0, 0, 0, time.UTC)},
		{"CRON_TZ=UTC @daily", berlin, time.Date(2024, 5, 15, 0, 0, 0, 0, time.UTC)},
		{"0 11 * * *", berlin, time.Date(2024, 5, 15, 10, 0, 0, 0, time.UTC)},
		{"0 9 * * 1", time.UTC, time.Date(2024, 5, 13, 9, 0, 0, 0, time.UTC)},
		{"@yearly", time.UTC, time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"0 0 29 2 *", time.UTC, time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)},
		{"0 0 30 2 *", time.UTC, time.Time{}},
		{"@every 5m", time.UTC, time.Date(2024, 5, 15, 10, 5, 0, 0, time.UTC)},
	} {
		if got := holdcron.Latest(parse(t, tc.spec), tc.location)(now); !got.Equal(tc.want) {
			t.Errorf("%s: %v, want %v", tc.spec, got, tc.want)
		}
	}
}

// The tick itself belongs to itself, and so does every instant until the next.
func TestLatestAgreesWithNext(t *testing.T) {
	for _, spec := range []string{"* * * * *", "13,14,50 */7 * * *", "30 4 1,15 * 5", "@monthly", "0 0 29 2 *"} {
		schedule := parse(t, spec)
		at := holdcron.Latest(schedule, time.UTC)
		tick := time.Date(2021, 3, 4, 5, 6, 7, 8, time.UTC)
		for range 15 { // in 2100 there is no 29 February, and cron looks five years ahead
			tick = schedule.Next(tick)
			next := schedule.Next(tick)
			within := tick.Add(rand.N(next.Sub(tick)))
			for _, now := range []time.Time{tick, within, next.Add(-1)} {
				if got := at(now); !got.Equal(tick) {
					t.Errorf("%s: at %v it is %v, want %v", spec, now, got, tick)
				}
			}
		}
	}
}
