// Package renewal keeps things alive in Redis that live there under a lease, and
// ends them in time when they cannot be kept alive.
//
// It costs one goroutine for any number of tasks, and 48 bytes for each of them:
//
//	Schedule ──► Wheel ──► scheduler goroutine ──► outbox ──► one goroutine per server
//	             (pure)    Tick, Suspect; no I/O   Node       Send, one batch at a time
//
// The scheduler's goroutine sleeps until the next occupied slot of the wheel, asks
// each task that is due what to do, and hands those that want to be renewed to the
// outbox. It never waits for a server, so that leases end in time while Redis cannot
// be reached. What may block happens behind it: finding a key's server, where it is not
// known, in a few goroutines started on demand, sending in one goroutine per server.
//
// What the parts rely on:
//
//   - Times are rounded down to Resolution. A task is never called later than its time
//     because of the wheel, and less than Resolution before it. The time that Tick is
//     given is the end of the current step, so that a task called early finds, by a
//     plain comparison, that its time has come.
//   - No mutex is held while a Task or the Sender is called.
//   - Tick and Suspect are called by one goroutine, so never twice at once.
//   - A task belongs to its caller: whether it is being renewed already is for its own
//     Tick to know. Each renewal it asks for is answered exactly once, by Send or Fail.
//   - One batch is on its way to a server at a time. However many leases fall due at
//     one instant, other clients of that Redis find gaps between the batches.
package renewal
