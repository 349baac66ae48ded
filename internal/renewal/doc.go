// Package renewal keeps holds in Redis alive by renewing their leases, and ends them in time
// when they cannot be kept alive. To this package each of them is a Task.
//
// It costs one goroutine for any number of tasks, and 48 bytes for each task:
//
//	Schedule ──► Wheel ──► scheduler goroutine ──► outbox ──► one stream per server
//	             (pure)    Tick, Suspect; no I/O   Node       Send, batch after batch
//
// The scheduler's goroutine sleeps until the next occupied slot of the wheel. Then it asks each
// task that is due what to do, and hands the tasks that want to be renewed to the outbox. It
// never waits for a server, so leases end in time while Redis cannot be reached. Whatever may
// block happens behind the outbox: a few goroutines, started on demand, find the servers of
// keys whose server is not known, and one goroutine per stream sends. A stream has the renewals of
// one server whose tries have much the same length. What ends first is sent first.
//
// What the parts rely on:
//
//   - Times are rounded down to Resolution. The wheel never makes a call of a task later than
//     the task's time, and makes it less than Resolution early. The time that Tick is given is
//     the end of the current step, so that a task that is called early finds, by a plain
//     comparison, that its time has come.
//   - No mutex is held while a Task or the Sender is called.
//   - One goroutine calls Tick and Suspect, so they never run twice at once.
//   - The package keeps no record of which tasks are being renewed: the task's own Tick must
//     know that. Send or Fail answers each renewal that a task asks for exactly once.
//   - While a server keeps up, one batch of a stream is on its way to it at a time. However many
//     leases fall due at one instant, other clients of that Redis find gaps between the batches.
//     Only a backlog that grows makes batches larger, and has several sent at a time.
package renewal
