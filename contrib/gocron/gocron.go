// Package holdgocron is for programs that run github.com/go-co-op/gocron/v2 on several replicas: each job then runs
// once, not once on each replica. The package has gocron's Locker, with which one replica at a time runs a job. Package
// leader has gocron's Elector, with which one replica runs all jobs.
//
//	gocron.NewScheduler(gocron.WithDistributedLocker(holdgocron.NewLocker(client, time.Minute)))
//
// # On success
//
// The job runs, and the lock is released when it returns. While the job runs, the lease is renewed, unless the
// options say otherwise. If the process dies, the lock is free after the lease, 30 s by default.
//
// # Clocks
//
// A lock alone excludes other replicas only while the job runs. If the clock of a replica is late by more than the job
// takes, that replica would run the job again. So NewLocker takes the argument atLeast: the lock stays held for this
// time, even if the job ends sooner. Let e be the most by which the clocks of the replicas may differ, or by which
// gocron may be late. atLeast must be longer than e, and shorter than the time between two runs minus e. For a job that
// runs every 5 minutes, a minute is right.
//
// # On a loss
//
// Gocron gives its Locker no way to stop a job. So the job goes on, another replica may begin the job, and gocron drops
// the error of Unlock. If a job must stop after a loss, it must first take a context from the Locker: see
// Locker.Context.
//
// # On an error
//
// The job does not run this time. Gocron calls the job's listener AfterLockError. Its error matches holdfast.ErrBusy if
// another replica holds the lock, and holdfast.ErrUnavailable if Redis has not answered for 3 s. At the job's next time
// gocron tries again.
//
// # Elector
//
// A leader.Election has gocron's Elector: gocron.WithDistributedElector(election.Elector()). The program must call the
// Election's Run. Gocron asks the Elector once before each run of a job, and the Elector answers without I/O. If the
// lead is lost during a job, the job goes on. If a job must stop then, derive its context from the context of the
// election's work. If Redis is gone, there is no leader when the lease is over, and no job runs.
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

// Prefix is the beginning of each lock's name, and the name of the job follows it: the lock of the job
// "report" is "gocron:report".
const Prefix = "gocron:"

// Locker implements gocron's Locker, for gocron's options WithDistributedLocker and
// WithDistributedJobLocker.
type Locker struct {
	client  *holdfast.Client
	atLeast time.Duration
	options []holdfast.LeaseOption

	mu   sync.Mutex        // guards held
	held map[string][]*Run // by job, those whose Context nobody has taken, the oldest first
}

// Run implements gocron's Lock. It is the lock of one run of a job.
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

// NewLocker returns a Locker. Each lock stays held for atLeast after its grant, even if the job ends sooner or the
// job's process dies. If atLeast is 0, the lock is released when the job ends. The options override the Client's
// defaults.
func NewLocker(client *holdfast.Client, atLeast time.Duration, options ...holdfast.LeaseOption) *Locker {
	return &Locker{client: client, atLeast: atLeast, options: options, held: make(map[string][]*Run)}
}

// Lock takes the lock of the job whose name is key. It asks once and does not wait: if another replica runs the job,
// this replica does not have to run it. Gocron uses the name of the job's function as the name of a job without one. So
// give a name to a job whose function is a closure.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	// Gocron's context is that of the job, and whatever lease it may carry is not this run's.
	held, err := l.client.Mutex(Prefix+key, l.options...).TryLock(lease.Bare(ctx))
	if err != nil {
		return nil, err
	}
	if l.atLeast > 0 {
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

// Unlock releases the lock, or leaves it held until atLeast is over. It goes on if ctx is cancelled: gocron cancels ctx
// when a scheduler is shut down. If the lock was lost, the error matches holdfast.ErrLost. Gocron drops the error.
func (r *Run) Unlock(ctx context.Context) error {
	r.locker.forget(r)
	return r.lease.Release(ctx)
}

// Context returns a context for one run of a job. It is derived from ctx, and is also cancelled when the run is over,
// or when the run's lock is lost. After a loss its cause matches holdfast.ErrLost. It carries the lease: see
// holdfast.LeaseFrom and lease.Note. Each run must call Context once, with the job's name, before it does anything
// else:
//
//	func report(ctx context.Context) error {
//		ctx = locker.Context(ctx, "report")
//		...
//
// Each lock gives one context, so that a run never gets the lock of another run. If Context was called before in the
// same run, or if the run is not under this Locker, the returned context is already cancelled.
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
