// Package conn is the one path by which every script of Holdfast reaches Redis: a call, from Run
// to its outcome. The engine has one Manager for each Client, the synchronizers bring Calls, and
// the subscription service asks a Manager where to subscribe.
//
// A Manager uses small clients of its own, made from the options of the go-redis client that it
// is given. They have short timeouts, so that a frozen server is noticed. They do not use
// go-redis's retries, which send a script again without the caller's knowledge. And they have
// connections of their own, so that the user's pool never starves Holdfast, nor the reverse.
//
// # The way of a call
//
//	conn     Run asks route for the server that has the call's first key, lets that send the
//	 │       call, and reads from the error what to do next
//	route    which server that is: one, the master that Sentinels name, or the one that has
//	 │       the slot
//	server   one server: it sends the call on a free wire, or queues it for the next pipeline,
//	 │ │     alone or in a bundle
//	 │ dial  a connection, and what runs of the user's while it is made
//	call     what is sent: scripts, calls, replies
//	 │
//	fault    what each error requires
//
// Arrows point down, and this is all that crosses them:
//
//	conn → route     Servers: Node, Known, At lead to a server; Moved and Failed report what a
//	                 server has answered; Sharded, Masters and Forgets say what these servers are
//	conn → server    Node.Send(Sending) → Outcome, for one call; Node.SendOnce, for a batch of
//	                 renewals; Node.Tell, for the messages of quiet forms; Node.Client, for
//	                 subscriptions; Events, from below
//	route → server   New, Sweep, Retire, Interrupt, Close: the life of a server's Node
//
// # One Run
//
// Run sends the call until it is answered. It retries what passes (a lost connection,
// LOADING, a failover, a slot on the move) until the caller's context ends. That is safe because
// every script is safe to run twice. Any other error is returned at once, with its sentinel. What
// comes after a sending:
//
//	answered          Run returns nil; but a Late reply, and the first no of a server that an ASK
//	                  has named, count as no answer
//	fault.Again       the server or the network may recover: it pauses, longer each time
//	fault.Anew        the connection was gone, or the call went out beside others: at once
//	fault.Unknown     the server does not have the script: with its text
//	fault.Moved       another server has the slot, or has the key this once: there
//	fault.Redirected
//	"bad lua script"  where scripts may not publish: in its quiet form (hush.go)
//	fault.Final       Run returns the error; a clean-up goes on after what an operator mends
//
// A batch of renewals is sent once, and its caller decides whether to try again. While no answer
// comes, copies of its calls are run beside it (batch.go): the answer that comes first counts.
//
// # The end of a call
//
//   - When the caller's context ends, Run returns at once. A request that was sent may still run,
//     up to its not-after and not later: Call.Outstanding says so, and the caller cleans up.
//   - Interrupt ends every call with errs.Closed, except those marked Cleanup, which go on until
//     Close. Close also ends all connections and goroutines, and waits for them.
//
// # What may be called from where
//
// Everything here may be called from any goroutine, but one goroutine has a Call. The mutexes of
// the sweeper and of the outage guard two fields each; nothing is called under them.
package conn
