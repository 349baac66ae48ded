// Who has a place in a queue that Redis keeps, and what a line does about it.

package line

// Grain says who has a place in a queue that Redis keeps.
type Grain int

const (
	// NoQueue: Redis keeps no queue.
	NoQueue Grain = iota
	// PerWaiter: each waiter has a place. It asks once when it arrives, which gives it its place.
	// From then on only the head of its process's line asks, and the head's requests keep the
	// places of those behind it, so that a process sends one heartbeat for all its waiters.
	PerWaiter
	// PerProcess: each process has one place, its seat, whichever of its waiters is the head. The
	// waiters behind the head ask for nothing.
	PerProcess
)

// policy is what the grain of a waiter decides. A method that says "under the mutex" is called by
// code that holds Lines.mu; the others take it if they need it.
type policy interface {
	// arrive returns the request of a waiter that has just come. It reports false if the waiter
	// stands in line without asking. held then says that the thing is known to be held.
	arrive(l *Lines, key string) (ask Ask, held, asks bool)
	// stand puts the waiter where it belongs in its line, by its prev, which is the last in the line
	// so far. It is called under the mutex.
	stand(q *line, me *waiter)
	// first returns the pause of a new head. It is called under the mutex.
	first(me *waiter) pause
	// rest returns for how much longer the head need not ask, though it was woken.
	rest(l *Lines, me *waiter, woke waking) pause
	// ask returns the head's request, and whether another must follow at once. It reports false if
	// the thing has been passed to the head in the meantime.
	ask(l *Lines, me *waiter) (ask Ask, more, ok bool)
	// answered takes in the answer to the head's request. It reports whether waiters behind the
	// head were nudged. A head whose request was granted, or failed, leaves.
	answered(l *Lines, me *waiter, ask Ask, a Answer, err error) (nudged bool)
	// handed reports whether the message hands the thing to the head, and whether the head need not
	// ask either. It is called under the mutex.
	handed(me *waiter, by HandOver) bool
	// leave sees to the place of a head that has just left its line. It is called under the mutex.
	leave(q *line, me *waiter)
}

// policies has the policy of each grain.
var policies = [...]policy{NoQueue: unqueued{}, PerWaiter: perWaiter{}, PerProcess: perProcess{}}

func (g Grain) policy() policy { return policies[g] }
