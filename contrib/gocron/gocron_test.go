package holdgocron_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast"
	holdgocron "github.com/holdfast-go/holdfast/contrib/gocron"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/leader"
)

// bubble runs a test in virtual time, with a server.
func bubble(t *testing.T, test func(t *testing.T, s *holdfasttest.Server)) {
	synctest.Test(t, func(t *testing.T) { test(t, holdfasttest.New(t)) })
}

// start runs the job "report" every 5 minutes on one replica, until the test ends. It returns what the listener is
// told whose lock is not granted.
func start(t *testing.T, job func(ctx context.Context), options ...gocron.SchedulerOption) <-chan error {
	t.Helper()
	options = append(options, gocron.WithLocation(time.UTC))
	scheduler, err := gocron.NewScheduler(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		wantErr(t, scheduler.Shutdown(), nil)
	})
	refused := make(chan error, 100)
	listener := gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { refused <- err })
	if _, err := scheduler.NewJob(gocron.DurationJob(5*time.Minute), gocron.NewTask(job),
		gocron.WithName("report"), gocron.WithEventListeners(listener)); err != nil {
		t.Fatal(err)
	}
	scheduler.Start()
	return refused
}

func locked(l *holdgocron.Locker) gocron.SchedulerOption { return gocron.WithDistributedLocker(l) }

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

func TestThreeReplicasRunAJobOnceEachTime(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		var runs atomic.Int32
		for range 3 {
			start(t, func(context.Context) { runs.Add(1) }, locked(holdgocron.NewLocker(s.Client(), time.Minute)))
			time.Sleep(20 * time.Second) // so the next one's clock is late
		}
		time.Sleep(time.Hour)
		if got := runs.Load(); got != 12 {
			t.Errorf("%d runs in an hour and a minute, want 12", got)
		}
	})
}

func TestWithoutItsLockTheJobIsSkipped(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		release := s.HoldElsewhere(holdgocron.Prefix + "report")
		runs := make(chan struct{}, 10)
		refused := start(t, func(context.Context) { runs <- struct{}{} }, locked(holdgocron.NewLocker(s.Client(), 0)))
		wantErr(t, <-refused, holdfast.ErrBusy)
		release()
		s.Down()
		wantErr(t, <-refused, holdfast.ErrUnavailable)
		if len(runs) > 0 {
			t.Error("it ran all the same")
		}
		s.Up()
		<-runs
		s.RequireNoLeases()
	})
}

// The lease is renewed, so a job may take longer than it.
func TestALongRunKeepsItsLockAndItsContextEndsWithALoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		told, client := make(chan error), s.Client()
		locker := holdgocron.NewLocker(client, 0)
		start(t, func(ctx context.Context) {
			held := locker.Context(ctx, "report")
			if _, ok := holdfast.LeaseFrom(held, client.Mutex(holdgocron.Prefix+"report")); !ok {
				t.Error("the context carries no lease")
			}
			time.Sleep(4 * time.Minute)
			wantErr(t, held.Err(), nil)
			s.Expire(holdgocron.Prefix + "report") // found out at the next renewal
			<-held.Done()
			if ctx.Err() != nil {
				t.Error("gocron's own context has ended")
			}
			told <- context.Cause(held)
		}, locked(locker))
		wantErr(t, <-told, holdfast.ErrLost)
	})
}

// Without Context gocron cannot tell the job: it goes on, and another replica begins.
func TestAfterALossTheJobGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		began, end := make(chan context.Context), make(chan struct{})
		job := func(ctx context.Context) {
			began <- ctx
			<-end
		}
		start(t, job, locked(holdgocron.NewLocker(s.Client(), 0)))
		first := <-began
		s.Expire(holdgocron.Prefix + "report")
		start(t, job, locked(holdgocron.NewLocker(s.Client(), 0)))
		<-began // beside the first
		if first.Err() != nil {
			t.Error("the context of the first has ended")
		}
		close(end)
	})
}

func TestContextIsOfOneRunAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		locker := holdgocron.NewLocker(s.Client(), 0)
		if locker.Context(t.Context(), "report").Err() == nil {
			t.Error("a context without a lock")
		}
		lock := func() gocron.Lock {
			l, err := locker.Lock(t.Context(), "report")
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		old := lock()
		s.Expire(holdgocron.Prefix + "report")
		later := lock()
		first, second := locker.Context(t.Context(), "report"), locker.Context(t.Context(), "report")
		if locker.Context(t.Context(), "report").Err() == nil {
			t.Error("a third context of two locks")
		}
		<-first.Done() // at the next renewal
		wantErr(t, old.Unlock(t.Context()), holdfast.ErrLost)
		wantErr(t, context.Cause(first), holdfast.ErrLost)
		if second.Err() != nil {
			t.Error("the end of the old run has ended the later one's lock")
		}
		wantErr(t, later.Unlock(t.Context()), nil)
		wantErr(t, context.Cause(second), holdfast.ErrReleased)
		wantErr(t, later.Unlock(t.Context()), holdfast.ErrReleased)
		s.RequireNoLeases()
	})
}

func TestTheLeaderRunsTheJobs(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server) {
		ran := make(chan int, 10)
		for i := range 2 {
			election := s.Client().Leader("scheduler")
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = election.Run(ctx, func(ctx context.Context, term *leader.Term) error {
					if i == 0 {
						time.Sleep(12 * time.Minute)
						return nil // resigns for good
					}
					<-ctx.Done()
					return nil
				})
			}()
			t.Cleanup(func() {
				cancel()
				<-done
			})
			start(t, func(context.Context) { ran <- i }, gocron.WithDistributedElector(election.Elector()))
			synctest.Wait() // the first one leads
		}
		for _, want := range []int{0, 0, 1, 1} {
			if got := <-ran; got != want {
				t.Errorf("replica %d ran, want %d", got, want)
			}
		}
		s.Down()
		time.Sleep(time.Hour)
		if len(ran) > 0 {
			t.Error("without Redis somebody leads")
		}
	})
}
