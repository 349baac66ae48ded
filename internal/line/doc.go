// Package line is the one way in which Holdfast waits. What is waited for, such as a lock or
// permits, is called the thing here. The waiters of one Client for one name stand in a line. Its
// first, the head, is the only one that subscribes and asks Redis.
//
// # One wait
//
//	Lines.Wait
//	├─ there is a line, and not every ──── follow: joins the line and asks nothing
//	│  waiter needs a place in a queue
//	└─ else ────────────────────────────── enter: asks once, unless that is of no use, and joins
//	                                       the line if it is refused
//	behind the head ────────────────────── sleeps until it is the head, or granted, or nudged
//	as the head ────────────────────────── waitAsHead: park; ask; park again
//
// The head asks whenever a message comes, its subscription is confirmed anew, the holder's
// lease is over, or PollBound has passed. Every wait that was in line ends by leave, which
// makes the next waiter the head, or by a grant from another waiter or holder, which has
// taken the waiter out of the line.
//
// A waiter is in one of these states:
//
//	behind    it stands behind the head and asks nothing
//	head      it runs waitAsHead
//	nudged    of a FairMutex: it asks once, then stands behind again
//	granted   by Redis (its request said so), by a holder of this process (Pass), by a
//	          message (handed), or by the head's grant, where that is everybody's (Common)
//
// # What goes one way, and what comes back
//
//	Want   what the caller says about its wait, once
//	Ask       what the line gives to one request: as which owner to ask, with which number
//	Answer    what that request has found out
//	Held      how long another still has the thing, as far as is known
//	HandOver  what a message hands over, so that no request is needed
//	Outcome   how the wait has ended
//
// # Grains
//
// The grain says who has a place in a queue that Redis keeps. What follows from it is a
// policy, with one file for each:
//
//	NoQueue      unqueued.go    nobody: Redis keeps no queue
//	PerWaiter    perwaiter.go   each waiter (FairMutex). Each asks once when it comes. From
//	                            then on only the head asks, and its requests keep the places
//	                            of those behind it
//	PerProcess   perprocess.go  the process as a whole (Mutex): the seat. It is the line's,
//	                            not the head's, so that it stays when a head leaves or a
//	                            lease is passed on
//
// seatState has the states of a seat, and docs/architecture.md shows how each follows from another.
// A seat that is given up is dropped from the line, and whoever dropped it releases it in Redis.
//
// The head sleeps for a pause (pause.go), which says why it asks when nothing has woken it before.
//
// # What holds at all times
//
//   - A line has one head, and nobody else changes what is not guarded by the mutex: the
//     subscription, heldUntil, due, beaten.
//   - Nothing is passed to a head that is asking: it might be granted the same thing by Redis.
//   - A holder passes to the first behind the head, and to the head only if it is alone:
//     the head keeps the seat for them all.
//   - A message is believed only in a place that is not in doubt, and only if what is left
//     is known to be long enough: see handed.
//   - A doubt stays with the waiter for as long as it waits.
//   - A line outlives its waiters only while it has a seat, or while a release is taking one.
//   - One goroutine of those that end a hold must call Abandon, or its seat would stand for
//     nobody until Redis passes it over.
//
// # What may be called from where
//
// Lines.mu guards every line. Nothing that may block is called under it: no Redis, no
// subscription, no channel that may be full. A method that has something to tell or to
// close returns it, and its caller does that once the mutex is given back.
//
// Pass, TakeSeat, Seated, HasSeat, Abandon and Awaited take Lines.mu for a moment, and may
// be called by anybody who does not hold a hold's mutex. Wait blocks, and calls
// the Asker and the subscription service, without the mutex.
package line
