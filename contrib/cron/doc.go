// Package holdcron is for programs that run github.com/robfig/cron/v3 on several replicas: each job then runs once, not
// once on each replica. It has two wrappers for cron's Chain:
//
//   - Once runs a job once for each tick (each time of its schedule), even if the clocks of the replicas
//     differ.
//   - Locked runs a job under a lock, so that two runs never overlap, on any replica.
//
// Use both wrappers together: when a replica wins a tick, the run for the tick before may not have
// ended.
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
// A replica that has won a tick cannot lose it, but a lock can be lost. Cron cannot stop a job, and a cron.Job has no
// context. A ContextJob, such as a JobFunc, gets a context from Locked. When the lock is lost, Locked cancels this
// context, before another process can be granted the lock as long as Redis keeps its data. Any other job goes on to its
// end. When the job has returned, Locked logs the loss, with an error that matches holdfast.ErrLost.
//
// # On an error
//
// The job does not run this time, and the logger's Error is called. If Redis does not answer within 3 s, the error
// matches holdfast.ErrUnavailable. If another replica has the tick or the lock, the logger's Info is called, not its
// Error. The next try is at the next time of the schedule.
//
// # Order in a Chain
//
// Once looks at the clock to find the tick of a run. So put Once before any wrapper that delays a run, such as
// cron.DelayIfStillRunning. Only the wrappers of this package pass a context on. So if the job is a ContextJob, put
// them last in the Chain.
package holdcron
