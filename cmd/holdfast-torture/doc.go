// Holdfast-torture has processes contend for locks while it breaks what they
// stand on, and says whether anything promised was broken.
//
//	go run ./cmd/holdfast-torture -topology single -for 60s -seed 1
//
// It needs a redis-server binary and nothing else: servers, sentinels, proxies and
// contenders are processes and sockets of its own on loopback. It ends with status 0
// if nothing promised was broken and enough was tried, with 1 if not, and writes
// what it found as Markdown and, with -report, as JSON too.
//
// # Who does what
//
// The program starts copies of itself. Each of these is a user of Holdfast with one
// Client; a few lanes (goroutines) for each kind of synchronizer take turns on a few
// names. The program itself is the referee, which the lanes tell what they do
// and whose registers they write, and it injects faults in three series, each
// drawn from the seed: on the wire, to the contenders, to the servers and connections.
// A fault of the wire meets one command: a script, a subscription or a WAIT. Faults of
// connections cut those that are there, and keep new ones from being made: names are not
// resolved, connections are refused, reset, or accepted and never answered, there are too many,
// or the password is refused.
//
// # What is checked
//
// Each lane claims to hold from an instant after its Lock returned to an instant at
// which it has looked and its lease's context had not ended. The instant is taken
// before the look, so a process that is stopped between the two claims nothing
// that it did not have; that is the rule by which a stop of any length is no overlap
// as such. A claim never reaches past the lease's deadline. All processes
// read the clock of the one machine, so claims can be laid side by side.
//
//   - Overlaps: two claims that exclude each other have an instant in common. None in
//     a promised tier, whatever was injected.
//   - The fence: each hold reads, adds one and writes a register that knows the
//     greatest token it has seen. A write that it takes and that another has
//     overtaken is a stale write. None in any tier. Tokens grow in every tier.
//   - Histories: acquisitions and releases of each name, cut to 10 000 operations,
//     are checked with Porcupine against a sequential model. What has no known
//     outcome may have happened at any time until a lease later.
//
// And besides: counts of semaphores and latches are exact, losses are told before
// the server's expiry, nobody waits long for a lock that is free, and no key,
// channel, connection or goroutine is left. A run with too few grants or faults fails.
//
// What no fault explains is held to tight bounds. For a lease and two seconds more there
// is none: then nine of ten hand-overs take a quarter of a second at the most, a fair lock
// goes to the lane that came first, and each process has its turns in a crowd for one
// lock. Throughout, a lease that is renewed and is lost outside the shadow of a fault is a
// violation, and so is a loss that its holder is never told.
//
// Some lanes sit: each has an object of its own, now for several leases, now for a
// moment. Others poke it: they ask for it and give up at once. What these leave behind,
// the sitter meets, and nobody else's turn hides it.
//
// Who was killed or stopped keeps what it had, or was handed, until a lease or its place
// in the queue has run out, and so the next one waits for reasons that are none of
// Holdfast's. Therefore a lookout asks the servers themselves, 20 times a second,
// whether the locks are held: a wake-up is lost if one was free for long
// while somebody waited, and the report has the longest waits with what was in the way.
// It also sees until when each lock is held and for whom: no lane may believe in its lease
// for longer than Redis, and no lock may stand for an owner that no lane knows.
//
// # Promised and not
//
// A fault that loses what Redis has acknowledged (a restart with empty memory, a
// failover where not all replicas have to confirm) opens a window in which
// two may hold. Overlaps of holds granted within it are counted, reported as not
// promised, and no failure. The fence has no such window. Semaphore and Latch have
// no leases and no replicas to wait for: after any failover that may lose writes
// they go on under a new name.
package main
