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

// DefaultKeep is how long Redis remembers that a tick was won, if the field Keep of Ticks is 0: 3 hours.
const DefaultKeep = 3 * time.Hour

// Ticks says which ticks a job has. A tick is a time of the job's schedule, and Once runs the job once
// for each tick. All replicas must give the same Ticks.
type Ticks struct {
	// Name is the name of the job. It is stored in Redis.
	Name string
	// At returns the tick of a run of the job that begins at now. The tick is a time of the schedule,
	// and now is the time by the clock of this replica. The function Latest makes an At from a
	// cron.Schedule. If At is nil or returns the zero time, the job does not run, and Once logs that.
	At func(now time.Time) time.Time
	// Keep is how long Redis remembers that a tick was won. Keep must be longer than this sum: how much
	// the clocks of the replicas may differ, plus how late a replica may be. If Keep is 0, Redis
	// remembers it for DefaultKeep.
	Keep time.Duration
}

// Once returns a wrapper that runs a job once for each tick, on one replica. A tick is a time of the
// job's schedule: see Ticks. Each replica asks for the tick by holdfast.Client.Tick, and one replica
// wins the tick. The job runs at most once for a tick: if the winner dies during the job, no replica
// runs the job for that tick.
//
// The context of every run is derived from ctx. If ctx has ended, the job does not run.
func Once(ctx context.Context, client *holdfast.Client, ticks Ticks, logger cron.Logger) cron.JobWrapper {
	if ticks.Keep == 0 {
		ticks.Keep = DefaultKeep
	}
	return wrap(ctx, func(ctx context.Context, job cron.Job) {
		var at time.Time
		if ticks.At != nil {
			at = ticks.At(time.Now())
		}
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

// TickFrom returns the tick of a run under Once, which is the time of the schedule for which the job
// runs. For example, a report can use the tick as its date. ok is false if ctx does not come from a run
// under Once.
func TickFrom(ctx context.Context) (at time.Time, ok bool) {
	at, ok = ctx.Value(tickKey{}).(time.Time)
	return at, ok
}

// Locked returns a wrapper that runs a job under the lock of locker. If another run or another process
// holds the lock, the job does not run this time. Locked releases the lock when the job returns or
// panics. While the job runs, Holdfast renews the lease, unless the options of locker say otherwise.
//
// The options are those of holdfast.Do. With holdfast.WaitAtMost(d), a run waits for the lock for at
// most d. With holdfast.AtLeast(d), the lock stays held for d after its grant, so that a replica whose
// clock is late does not run a short job again. The wrapper Once prevents a second run without such a
// time d.
//
// The context of every run is derived from ctx. If ctx has ended, the job does not run. If ctx carries a
// lease on the same lock, a run does not re-enter that lease.
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

// ContextJob is a job that takes a context. Once and Locked call its RunContext instead of its Run.
type ContextJob interface {
	cron.Job
	RunContext(ctx context.Context)
}

// JobFunc is a function as a ContextJob. The function takes the context of the run.
type JobFunc func(ctx context.Context)

var _ ContextJob = JobFunc(nil)

// Run calls f with context.Background().
func (f JobFunc) Run() { f(context.Background()) }

// RunContext calls f with ctx.
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
