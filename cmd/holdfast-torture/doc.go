// Holdfast-torture makes processes contend for locks while it injects faults into the servers
// and connections under them, and reports whether anything promised was broken.
//
//	go run ./cmd/holdfast-torture -topology single -for 60s -seed 1
//
// It needs a redis-server binary and nothing else: servers, sentinels, proxies and contenders
// are processes and sockets of its own on loopback. It ends with status 0 if nothing promised
// was broken and enough was tried, and with 1 if not. It writes its findings as Markdown and,
// with -report, as JSON too.
//
// # Who does what
//
// The program starts copies of itself, the contenders. Each contender is a user of Holdfast
// with one Client. For each kind of synchronizer it has a few lanes (goroutines), which take
// turns on a few names. The program itself is the referee: the lanes report to it what they do,
// and write its registers. It also injects faults in three series, each drawn from the seed: on
// the wire, to the contenders, and to the servers and connections. A fault of the wire affects
// one command: a script, a subscription or a WAIT. Faults of connections cut the present
// connections, and keep new ones from being made: names are not resolved, connections are
// refused, reset, or accepted and never answered, there are too many clients, or the password
// is refused.
//
// # What is checked
//
// Each lane claims to hold from an instant after its Lock returned to an instant at which it
// has looked and its lease's context had not ended. The instant is taken before the look, so a
// process that is stopped between the two claims nothing that it did not have. By that rule a
// stop of any length is not an overlap in itself. A claim never reaches past the lease's
// deadline. All processes read the clock of the one machine, so claims of different processes
// can be compared.
//
//   - Overlaps: two claims that exclude each other have an instant in common. None may occur in
//     a promised tier, whatever was injected.
//   - The fence: each hold reads a register, adds one, and writes it back. The register knows
//     the greatest token that it has seen. A stale write is a write that the register takes
//     although another has overtaken it. None may occur in any tier. Tokens grow in every tier.
//   - Histories: the acquisitions and releases of each name, cut to 10 000 operations, are
//     checked with Porcupine against a sequential model. An operation without a known outcome
//     may have happened at any time until a lease later.
//
// Besides: counts of semaphores and latches are exact, holders are notified of losses before the server's
// expiry, no waiter waits long for a lock that is free, and no key, channel, connection or
// goroutine is left. A run with too few grants or faults fails.
//
// Where no fault can be the reason, the bounds are tight. For a lease and two seconds more
// there is no fault: in that time nine of ten hand-overs take at most a quarter of a
// second, a fair lock goes to the lane that came first, and each process has its turns in a crowd
// for one lock. Throughout the run, the loss of a renewed lease outside the shadow of a fault
// is a violation, and so is a loss of which its holder is never notified. With -bounds=false the report lists what took
// too long, and that is no violation: a busy machine may be the reason.
//
// Lanes of the kind leader are candidates, of two priorities; some preempt, and some lanes ask the
// leaders to resign. A term is judged as the hold of a lock. Lanes of the kind once ask for the results
// of keys that come and go with the time. The work of a key is a hold too, and its effect is a write to
// the key's register; now and then the work fails, also after its effect. For each key all callers have
// one result, and the oracle counts the effects. A second one must be explained: the process that had
// the first was killed, stood still, or could not reach Redis; the work failed; or Redis had lost its
// data. After a result that was kept, only the last explains it.
//
// Lanes of the kind barrier are parties; some leave soon, and some reset the barrier. Of each generation
// that has tripped all parties are notified, each with another arrival, except those that were killed or
// cannot know; to none it has broken; and its number is greater than those of
// all that had ended before. Barriers do not wait for replicas either: a generation during which Redis
// may have lost its data is left out.
//
// Lanes of the kind shards are members for a while. Each work on a shard is judged as the hold of a lock, until its
// context ends. Which member has which shard is not replicated before it counts: works that a failover may have
// forgotten are like those of barriers.
//
// Some lanes sit: each has an object of its own, which it holds now for several leases, now for
// a moment. Others poke it: they ask for the object and give up at once. Whatever a poker
// leaves behind meets the sitter, and no other lane's turn hides it.
//
// A contender that was killed or stopped keeps the locks that it held, or that were handed to
// it, until a lease or its place in the queue has run out. So the next waiter may wait for
// reasons that are not Holdfast's. Therefore a lookout asks the servers themselves, 20 times a
// second, whether the locks are held: a wake-up is lost if a lock was free for long while a
// lane waited for it. The report has the longest waits, with the state of the lock in Redis
// meanwhile. The lookout also sees until when each lock is held and for whom: no lane may
// believe in its lease for longer than Redis, and no lock may stand for an owner that no lane
// knows.
//
// # Promised and not
//
// A fault that loses data that Redis has acknowledged (a restart with empty memory, a failover
// where not all replicas have to confirm) opens a window in which two may hold. Overlaps of
// holds that were granted within it are counted and reported as not promised away, and are not
// a failure. The fence has no such window. Semaphore and Latch have no leases and do not wait
// for replicas: after any failover that may lose writes, the lanes go on with them under a new
// name.
package main
