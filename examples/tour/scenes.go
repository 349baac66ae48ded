package main

// scenes are the parts of the tour, in order. A new synchronizer adds its own
// here, in a file of its own.
var scenes = []scene{
	{"A and B take turns", takeTurns},
	{"A wait has an end: B gives up after 500 ms", giveUp},
	{"Re-entry: 1, 2, 3 and back", reenter},
	{"The watchdog renews a lease as long as it is held", watchdog},
	{"A fixed lease runs out, and the late release harms nobody", runOut},
	{"A holder vanishes: the waiter follows when the lease is over", vanish},
	{"A stranger's release is refused, a forced one works", force},
	{"Woken by a message, beside a poll every 100 ms", wakeUp},
	{"The fence: a writer that overslept its lease is refused", fence},
	{"Do: lock, work, release; and what to do when it is busy", doOrElse},
	{"Detach in A, attach in B", handOver},
	{"The spans of one lock", spans},
}
