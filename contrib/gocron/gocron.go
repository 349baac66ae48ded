// Package holdgocron lets several replicas run the jobs of github.com/go-co-op/gocron/v2, but not several times. It
// has gocron's Locker, by which one replica at a time runs a job. By gocron's Elector, which package leader has,
// one replica runs all jobs.
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
// A lock alone excludes only for as long as the job runs: a replica whose clock is late by more than that would run
// the job again. So NewLocker asks for a time that the lock stays held, even if the job is done sooner. Call e the
// most by which the clocks of the replicas may differ, or gocron may be late. The time must be longer than e, and
// shorter than the time between two runs minus e. For a job that runs every 5 minutes, a minute is right.
//
// # On a loss
//
// Gocron gives its Locker no way to stop a job. The job goes on, another replica may begin, and gocron drops the
// error of Unlock. A job that is to be stopped takes a context from the Locker, as its first act: see
// Locker.Context.
//
// # On an error
//
// The job does not run this time. Gocron calls the job's listener AfterLockError: the error matches holdfast.ErrBusy if
// another holds the lock, and holdfast.ErrUnavailable if Redis has not answered for 3 s. The next run is tried as ever.
//
// # Elector
//
// A leader.Election has gocron's Elector: gocron.WithDistributedElector(election.Elector()). The program must call
// the Election's Run. Gocron asks once before each run, and Holdfast answers without I/O. If the lead is lost during
// a job, the job goes on. A job that is to be stopped derives its context from that of the election's work. If Redis
// is gone, there is no leader when the lease is over, and no job runs.
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

// Prefix begins the name of each lock, and the name of the job follows: the lock of the job "report" is
// "gocron:report".
const Prefix = "gocron:"

// Locker is gocron's Locker, for its options WithDistributedLocker and WithDistributedJobLocker.
type Locker struct {
	client  *holdfast.Client
	atLeast time.Duration
	options []holdfast.LeaseOption

	mu   sync.Mutex        // guards held
	held map[string][]*Run // by job, those whose Context nobody has taken, the oldest first
}

// Run is gocron's Lock: the lock of one run of a job.
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

// NewLocker returns a Locker. Each lock stays held for atLeast after its grant, even if the job is done sooner or its
// process dies; with 0 it is released when the job ends. The options override the Client's defaults.
func NewLocker(client *holdfast.Client, atLeast time.Duration, options ...holdfast.LeaseOption) *Locker {
	return &Locker{client: client, atLeast: atLeast, options: options, held: make(map[string][]*Run)}
}

// Lock takes the lock of the job, whose name is key. It asks once and does not wait: if another replica runs the job,
// this one need not. Jobs without a name have that of their function, so give names to closures.
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

// Unlock releases the lock, or leaves it held until atLeast is over. It goes on if ctx is cancelled, which gocron
// does when a scheduler is shut down. If the lock was lost, the error matches holdfast.ErrLost; gocron drops it.
func (r *Run) Unlock(ctx context.Context) error {
	r.locker.forget(r)
	return r.lease.Release(ctx)
}

// Context returns a context for the run of a job that calls it: ctx, but also cancelled when the run's lock is lost,
// with a cause that matches holdfast.ErrLost, and when the run is over. It carries the lease: see
// holdfast.LeaseFrom and lease.Note. Call it once in each run, with the job's name, before anything else:
//
//	func report(ctx context.Context) error {
//		ctx = locker.Context(ctx, "report")
//		...
//
// Each lock gives one context, so that a run never gets the lock of another. If there is none left, because Context
// was called before in this run, or the run is not under this Locker, the context is cancelled already.
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
