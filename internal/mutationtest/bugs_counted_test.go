// Bugs of semaphores, latches, quorums and tokens.

package mutationtest

var countedBugs = []bug{}
