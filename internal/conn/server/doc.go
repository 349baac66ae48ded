// Package server is one server: the requests to it, and the connections that they go out on. Package
// route makes a Node for each server, package conn sends on it.
//
// # The way of a request
//
//	Node.Send     a call becomes a request. A caller that finds a free wire sends at once;
//	              callers that find every wire busy queue
//	flush         when a wire comes free, its share of the queue goes out as one pipeline: group
//	              commit
//	carried       several requests of a pipeline may go out as one script, a bundle
//	wire.run      one connection: it stamps each request with its not-after, writes, and reads the
//	              replies
//	link          the connection as go-redis sees it: when to give up reading, and when to cut
//
// A Node has three carriers, each with wires of its own, so that what one carries does not wait for
// what another does:
//
//	callers      most calls, by group commit
//	replicated   calls that wait for replicas, likewise
//	renewals     batches of renewals, each with a wire while it is under way. Where none can be
//	             made, a batch goes into the callers' queue (renew)
//
// A request is in one of these states:
//
//	waiting     in the queue, or about to be sent; its caller may withdraw it
//	withdrawn   its call belongs to its caller again; nobody looks at it any more
//	preparing   a wire builds the commands of its pipeline
//	sent        it may run until its not-after, whether its caller waits or not
//
// # What holds at all times
//
//   - No caller makes a connection. The node does, on goroutines of its own (open, openRenewals), through the
//     gate, which lets a server that has failed be dialled once at a time and with growing pauses.
//   - A wire is one connection, and has one user at a time. Whatever ends a call cuts it under the
//     reader; then it is not used again. It is never waited for.
//   - The failure of a wire in use begins a new era. Wires of earlier eras are dropped: they may lead
//     to a former master. A connection that could not be made begins no era.
//   - A clock, the lower bound of the server's, belongs to one connection: the next may lead to another
//     server.
//   - WAIT is on the connection that wrote.
//
// # What may be called under which mutex
//
// carrier.mu guards a carrier's queue and its lists of wires. Nothing that may block is called under it:
// wires are ended after it, or on a goroutine of the node. gate.mu may be taken under it; gate.mu and
// learned.mu are leaves. Only Retire holds several carriers' mutexes, in the order of Node.carriers.
// Events are called under none of them. Interrupt cuts the connections in use, so that all callers
// return; Close waits for the node's goroutines.
package server
