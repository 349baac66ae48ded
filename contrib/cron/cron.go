// The wrappers, and jobs that take a context.

package holdcron

import (
	"context"
	"errors"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lease"
)

// DefaultKeep is how long Once remembers that a tick was won, if Ticks.Keep is 0: 3 hours.
const DefaultKeep = 3 * time.Hour

// Ticks says which ticks a job has: the times of its schedule, for each of which the job runs once. All
// replicas must give the same Ticks.
type Ticks struct {
	// Name is the name of the job. It is stored in Redis.
	Name string
	// At returns the tick of a run that begins at now: a time of the schedule. now is the time by this replica's clock.
	// The function Latest makes an At from a cron.Schedule. If At returns the zero time, the job does not run.
	At func(now time.Time) time.Time
	// Keep is how long Redis remembers that a tick was won. Add the most by which the clocks of the replicas may differ,
	// and the most by which a replica may be late: Keep must be longer than the sum. 0 means DefaultKeep.
	Keep time.Duration
}

// Once returns a wrapper with which a job runs once for each tick (each time of the schedule), on one replica. Each
// replica asks for the tick by holdfast.Client.Tick, and one replica wins it. The job runs at most once: if the winner
// dies during the job, no replica runs the job for that tick.
//
// ctx is the context of every run. If it has ended, the job does not run.
func Once(ctx context.Context, client *holdfast.Client, ticks Ticks, logger cron.Logger) cron.JobWrapper {
	if ticks.Keep == 0 {
		ticks.Keep = DefaultKeep
	}
	return wrap(ctx, func(ctx context.Context, job cron.Job) {
		at := ticks.At(time.Now())
		if at.IsZero() {
			logger.Error(errors.New("holdcron: no tick"), "skip", "job", ticks.Name)
			return
		}
		won, err := client.Tick(ctx, ticks.Name, at, ticks.Keep)
		switch {
		case err != nil:
			logger.Error(err, "skip", "job", ticks.Name, "tick", at)
		case !won:
			logger.Info("skip", "job", ticks.Name, "tick", at)
		default:
			run(context.WithValue(ctx, tickKey{}, at), job)
		}
	})
}

type tickKey struct{}

// TickFrom returns the tick of a run under Once: the time of the schedule for which the job runs. A report can use it
// as its date. ok is false if ctx does not come from a run under Once.
func TickFrom(ctx context.Context) (at time.Time, ok bool) {
	at, ok = ctx.Value(tickKey{}).(time.Time)
	return at, ok
}

// Locked returns a wrapper with which a job runs under the lock. If another run or process holds the lock, the job does
// not run this time. The lock is released when the job returns or panics. While the job runs, the lease is renewed,
// unless the locker's options say otherwise.
//
// The options are those of holdfast.Do. With holdfast.WaitAtMost(d) a run waits for the lock for at most d. With
// holdfast.AtLeast(d) the lock stays held until d after its grant, so that a replica whose clock is late does not run a
// short job again. Once prevents such a second run without a d.
//
// ctx is the context of every run. If ctx has ended, the job does not run. If ctx carries a lease on the same lock, a
// run does not re-enter that lease.
func Locked(
	ctx context.Context, locker holdfast.Locker, logger cron.Logger, options ...holdfast.DoOption,
) cron.JobWrapper {
	options = append([]holdfast.DoOption{holdfast.WaitAtMost(0)}, options...)
	return wrap(ctx, func(ctx context.Context, job cron.Job) {
		began := false
		err := holdfast.Do(lease.Bare(ctx), locker, func(ctx context.Context) error {
			began = true
			run(ctx, job)
			return nil
		}, options...)
		switch {
		case err == nil:
		case began:
			logger.Error(err, "the job has run")
		case errors.Is(err, holdfast.ErrBusy):
			logger.Info("skip", "reason", err)
		default:
			logger.Error(err, "skip")
		}
	})
}

// ContextJob is a job that takes a context. Once and Locked call RunContext in place of Run.
type ContextJob interface {
	cron.Job
	RunContext(ctx context.Context)
}

// JobFunc makes a ContextJob from a function.
type JobFunc func(ctx context.Context)

var _ ContextJob = JobFunc(nil)

// Run calls the function with context.Background().
func (f JobFunc) Run() { f(context.Background()) }

// RunContext calls the function.
func (f JobFunc) RunContext(ctx context.Context) { f(ctx) }

func run(ctx context.Context, job cron.Job) {
	if job, ok := job.(ContextJob); ok {
		job.RunContext(ctx)
		return
	}
	job.Run()
}

// wrap makes a wrapper of a function that runs a job or does not. What it wraps is a ContextJob, so that the next
// wrapper gets the context.
func wrap(base context.Context, around func(ctx context.Context, job cron.Job)) cron.JobWrapper {
	return func(job cron.Job) cron.Job {
		return wrapped{base, func(ctx context.Context) { around(ctx, job) }}
	}
}

// wrapped is a job that cron starts with the base context, and another wrapper with its own.
type wrapped struct {
	base context.Context
	JobFunc
}

func (w wrapped) Run() { w.JobFunc(w.base) }
