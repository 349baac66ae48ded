// Package holdcron is for programs that run github.com/robfig/cron/v3 on several replicas: each job then
// runs once, and not once on each replica. It has two wrappers for cron's Chain:
//
//   - Once runs a job once for each tick (each time of the job's schedule), even if the clocks of the
//     replicas differ.
//   - Locked runs a job under a lock, so that two runs never overlap, on any replica.
//
// Use both wrappers together, because a replica may win a tick while the run for the previous tick has
// not ended.
//
//	cron.NewChain(
//		holdcron.Once(ctx, client, holdcron.Ticks{Name: "report", At: holdcron.Latest(schedule, c.Location())}, logger),
//		holdcron.Locked(ctx, client.Mutex("report"), logger),
//	).Then(holdcron.JobFunc(report))
//
// # On success
//
// The job runs, on the goroutine that cron has started for it.
//
// # On a loss
//
// A replica that has won a tick cannot lose the tick, but a replica can lose a lock. Cron cannot stop a
// job, and a cron.Job has no context. A ContextJob, such as a JobFunc, gets a context from Locked. When
// the lock is lost, Locked cancels this context. It does so before another process can be granted the
// lock, if Redis has not lost its data. A job that is no ContextJob goes on to its end. When the job has
// returned, Locked logs the loss, with an error that matches holdfast.ErrLost.
//
// # On an error
//
// The job does not run this time, and the wrapper calls the logger's Error. If Redis does not answer
// within 3 s, the error matches holdfast.ErrUnavailable. If another replica has the tick or the lock,
// the wrapper calls the logger's Info instead of its Error. The next try is at the next time of the
// schedule.
//
// # Order in a Chain
//
// Once finds the tick of a run by the time at which Once is called. So put Once before any wrapper that
// delays a run, such as cron.DelayIfStillRunning. Only the wrappers of this package pass a context on to
// the next wrapper. So if the job is a ContextJob, put the wrappers of this package last in the Chain.
package holdcron
