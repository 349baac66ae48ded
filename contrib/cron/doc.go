// Package holdcron runs the jobs of github.com/robfig/cron/v3 on several replicas, but not several times. It has
// two wrappers for cron's Chain:
//
//   - Once runs a job once for each time of its schedule, whatever the clocks of the replicas say.
//   - Locked runs a job under a lock, so that two runs never overlap, on any replica.
//
// They go together: when a tick is won, the run of the tick before may still go on.
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
// A tick that is won cannot be lost. A lock can. Cron cannot stop a job, and a cron.Job has no context. A
// ContextJob, such as a JobFunc, gets one: Locked cancels it when the lock is lost, before another can be granted
// the lock as long as Redis keeps its data. Any other job goes on to its end. When the job has returned, Locked logs
// that, with an error that matches holdfast.ErrLost.
//
// # On an error
//
// The job does not run this time, and that is logged. If Redis does not answer within 3 s, the error matches
// holdfast.ErrUnavailable. If another replica has the tick or the lock, the logger's Info gets that, not its
// Error. The next try is at the next time of the schedule.
//
// # Order in a Chain
//
// Once looks at the clock to know which tick a run is for. So put it before whatever delays a run, such as
// cron.DelayIfStillRunning. Only wrappers of this package pass a context on, so put a ContextJob right behind them.
package holdcron
