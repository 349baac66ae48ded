// Package holdgocron is for programs that run github.com/go-co-op/gocron/v2 on several replicas: each
// job then runs once, and not once on each replica. The package has a Locker for gocron, with which one
// replica at a time runs a job. Package leader has an Elector for gocron, with which one replica runs
// all jobs.
//
//	gocron.NewScheduler(gocron.WithDistributedLocker(holdgocron.NewLocker(client, time.Minute)))
//
// # On success
//
// The job runs, and the lock is released when the job returns. While the job runs, Holdfast renews the
// lease, unless the options say otherwise. If the process dies, the lock is free when the lease is over,
// after 30 s by default.
//
// # Clocks
//
// A lock alone excludes other replicas only while the job runs. If the clock of another replica is late
// by more time than the job takes, that replica would run the job again. So NewLocker has the argument
// atLeast: the lock stays held for this time after its grant, even if the job ends sooner. Let e be the
// longest time by which the clocks of the replicas may differ, or by which gocron may be late. atLeast
// must be longer than e. It must be shorter than the time between two runs minus e. For a job that runs
// every 5 minutes, one minute is right.
//
// # On a loss
//
// Gocron gives its Locker no way to stop a job. So if the lock is lost, the job goes on, and another
// replica may begin the job. Gocron drops the error of Unlock. If a job must stop when its lock is lost,
// it must take its context from Locker.Context.
//
// # On an error
//
// The job does not run this time. Gocron calls the job's listener AfterLockError with the error. The
// error matches holdfast.ErrBusy if another replica holds the lock, and holdfast.ErrUnavailable if Redis
// has not answered for 3 s. Gocron tries again at the job's next time.
//
// # Elector
//
// A leader.Election has an Elector for gocron: gocron.WithDistributedElector(election.Elector()). The
// program must call the Run of the Election. Gocron asks the Elector once before each run of a job, and
// the Elector answers without I/O. If the lead is lost during a job, the job goes on. If a job must stop
// when the lead is lost, derive the job's context from the context that the Election gives to its work.
// If Redis is gone, there is no leader as soon as the lease is over, and no job runs.
package holdgocron

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/lease"
)

// Prefix is the beginning of each lock's name. The name of the job follows the Prefix: the lock of the
// job "report" is "gocron:report".
const Prefix = "gocron:"

// Locker implements gocron's interface Locker. Use it with gocron's options WithDistributedLocker and
// WithDistributedJobLocker.
type Locker struct {
	client  *holdfast.Client
	atLeast time.Duration
	options []holdfast.LeaseOption

	mu   sync.Mutex        // guards held
	held map[string][]*Run // by job, those whose Context nobody has taken, the oldest first
}

// Run is the lock of one run of a job. It implements gocron's interface Lock.
type Run struct {
	locker *Locker
	job    string
	lease  *holdfast.Lease
}

var (
	_ gocron.Locker  = (*Locker)(nil)
	_ gocron.Lock    = (*Run)(nil)
	_ gocron.Elector = leader.Elector{}
)

// NewLocker returns a Locker. Each lock stays held for atLeast after its grant, even if the job ends
// sooner or the job's process dies. If atLeast is 0, the lock is released when the job ends. If atLeast is
// negative, every Lock fails, and the error matches holdfast.ErrBadArgument. options override the
// Client's defaults.
func NewLocker(client *holdfast.Client, atLeast time.Duration, options ...holdfast.LeaseOption) *Locker {
	return &Locker{client: client, atLeast: atLeast, options: options, held: make(map[string][]*Run)}
}

// Lock takes the lock of the job whose name is key. Lock asks once and does not wait, because this
// replica does not have to run the job if another replica runs it. If a job has no name, gocron uses the
// name of the job's function. So if the function is a closure, give the job a name.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	// Gocron's context is that of the job, and whatever lease it may carry is not this run's.
	held, err := l.client.Mutex(Prefix+key, l.options...).TryLock(lease.Bare(ctx))
	if err != nil {
		return nil, err
	}
	if l.atLeast != 0 {
		if err := held.AtLeast(ctx, l.atLeast); err != nil {
			_ = held.Release(ctx) // if that fails too, the lock is free when the lease is over
			return nil, err
		}
	}
	run := &Run{locker: l, job: key, lease: held}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[key] = append(l.held[key], run)
	return run, nil
}

// Unlock releases the lock. If atLeast is not over yet, the lock stays held until then. Unlock goes on
// even if ctx is cancelled, because gocron cancels ctx when a scheduler is shut down. If the lock was
// lost, the error matches holdfast.ErrLost. Gocron drops the error.
func (r *Run) Unlock(ctx context.Context) error {
	r.locker.forget(r)
	return r.lease.Release(ctx)
}

// Context returns a context for one run of the job. The returned context is derived from ctx. It is also
// cancelled when the run is over, or when the lock of the run is lost. After a loss the cause of the
// context matches holdfast.ErrLost. The context carries the lease of the run: see holdfast.LeaseFrom and
// lease.Note. Each run must call Context once, with the job's name, before it does anything else:
//
//	func report(ctx context.Context) error {
//		ctx = locker.Context(ctx, "report")
//		...
//
// Each lock gives only one context, so that a run never gets the lock of another run. If the same run
// has called Context before, or if the run is not under this Locker, the returned context is already
// cancelled.
func (l *Locker) Context(ctx context.Context, job string) context.Context {
	return l.next(job).Context(ctx)
}

// next takes the oldest run whose Context nobody has taken, and returns its lease. If there is none, it
// returns nil, which counts as an ended lease.
func (l *Locker) next(job string) *holdfast.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.held[job]) == 0 {
		return nil
	}
	run := l.held[job][0]
	l.remove(run)
	return run.lease
}

func (l *Locker) forget(run *Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(run)
}

// remove is called under l.mu.
func (l *Locker) remove(run *Run) {
	left := slices.DeleteFunc(l.held[run.job], func(r *Run) bool { return r == run })
	if len(left) == 0 {
		delete(l.held, run.job)
		return
	}
	l.held[run.job] = left
}
