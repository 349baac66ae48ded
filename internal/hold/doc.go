// Package hold is the life of what is held: how it is asked for, kept, passed on and given up, and
// how its holder is notified of its end. Package lease shows users the Lease; the packages of
// the synchronizers bring a Resource and make a Request.
//
// Leases of one owner on one thing (a lock, and whatever re-entered it) make up a hold, which is
// what Redis knows. A hold begins with its first lease and ends with its last, in whatever order
// they are released.
//
// # How a lease comes about
//
//	Request.Acquire
//	├─ ctx carries a lease on this name ── hold.enter: recount, one lease more on the hold
//	└─ else ────────────────────────────── acquisition.fresh: a new owner, which waits in
//	                                       line (line.Lines.Wait), and is granted by Redis
//	                                       (Try, keep), by a message (handed, keep), or is
//	                                       passed a lease by a holder of this process
//
// An acquisition that ends without a lease gives up, in the background, what its requests
// may have taken: undo. One that is granted too late, or while the Client closes, gives the
// grant back the same way.
//
// # The hold
//
// A hold is renewed by the scheduler of package renewal, whose task it is. It
//
//	lives      from its grant on. Its deadline is the sending of the last request that was
//	           answered, plus the time to live that the answer gave, minus the margin
//	is gone    by the release of its last lease; by Detach; because its deadline, or
//	           the grace before it, has come, or Redis has said that it is not there
//	           (lost); because its last lease was a fixed one that is over, or its MaxHold
//	           is (ended as agreed); or because the Client closes
//
// What holds at all times:
//
//   - As long as Redis keeps the key, it gives the thing to nobody else before the deadline.
//     So a holder that is notified at the deadline is notified in time.
//   - Only a grant makes a hold. A renewal, a recount or an Extend that finds no field has
//     found a loss.
//   - No request but the last one shortens the time to live, so that of two answers which
//     overtook each other the later end is right: see overtook.
//   - One change of the count is under way at a time (take, give), and each writes the
//     count that will be.
//   - While requests whose replies were never heard may still make the hold anew (late),
//     it is not passed on, and its release goes on until that time is over.
//   - A release ends the lease here before it sends anything.
//   - A hold that is to stay (AtLeast) lasts in Redis for that long from the call of AtLeast on, is
//     not passed on, and its last release only sets when it ends.
//
// A hold may be passed on within its process: its last lease ends, and the next waiter has
// a new lease on the same hold, with the next of the tokens that the grant reserved (makeHeir,
// pass). For Redis nothing has changed.
//
// # What may be called from where
//
// hold.mu guards the hold and the state of its leases. Nothing that may block, or that takes
// another mutex, is called under it: not Redis, not the scheduler, not the engine's lines, not a
// context's cancel. The code collects the endings under the mutex, and announces them afterwards
// (Lease.tell, announce): it cancels the contexts first, and then closes Done.
//
// Tick and Suspect are called by the one goroutine of the scheduler, which must never wait;
// Renewed by the goroutine of a server's sender.
package hold
