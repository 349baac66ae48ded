// This file lists the scenes.

package scenes

// scenes are the parts of the tour, in order.
var scenes = []scene{
	{"A and B take turns", takeTurns},
	{"A wait has an end: B gives up after 500 ms", giveUp},
	{"Re-entry: 1, 2, 3 and back", reenter},
	{"The watchdog renews a lease as long as it is held", watchdog},
	{"A fixed lease runs out, and the late release harms nobody", runOut},
	{"A holder vanishes: the waiter follows when the lease is over", vanish},
	{"A stranger's release is refused, a forced one works", force},
	{"Woken by a message, beside a poll every 100 ms", wakeUp},
	{"Do: lock, work, release, with hooks; and what to do when it is busy", doOrElse},
	{"The fence: a writer that overslept its lease is refused", fencing},
	{"Detach in A, attach in B", handOver},
	{"A fair queue: order in is order out, beside a lock that promises none", fairQueue},
	{"Readers together, a writer alone, and a downgrade", readWrite},
	{"Ten workers on three permits", threePermits},
	{"A permit that expires", permitExpires},
	{"A holder dies, and its permits come back", permitsComeBack},
	{"Numbered slots: each process has its own, and a dead one's rests", numberedSlots},
	{"Six shards, three members: they share evenly, and a dead one's go on elsewhere", dividedWork},
	{"A latch of five", latchOfFive},
	{"A barrier of three: they go on together, or are told", threeTogether},
	{"One leads; it resigns, and the next leads", oneLeads},
	{"Eight callers, one charge: the work of a key is done once", doneOnce},
	{"Twenty a second, in turn: A and B share one limit", inTurn},
	{"All of three locks on three servers, one of them stopped", allOfThree},
	{"A quorum of five servers, two and then three of them stopped", quorumOfFive},
	{"16 segments against one lock", segments},
	{"A stock of 100, with and without a lock", stock},
	{"An alarm for a lock that is held for long", alarm},
	{"The spans of one lock", spans},
	{"Time to stop: the context ends before the lock is free", timeToStop},
	{"A holder hears at once: asked for the lock, and robbed of it", hearsAtOnce},
	{"The newest wins: an older deploy stops first", newestWins},
	{"In a hurry: a waiter passes one that came just before", inAHurry},
	{"Looking on: a grant and a release, seen by a third", lookingOn},
	{"Paused: nobody takes a tick during a migration", paused},
	{"One prefix for all keys", underOnePrefix},
}

// Titles returns the titles of the scenes, in order.
func Titles() []string {
	titles := make([]string, len(scenes))
	for i, scene := range scenes {
		titles[i] = scene.title
	}
	return titles
}
