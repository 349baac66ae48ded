// Bugs of the read/write lock and the queries.

package mutationtest

var rwlockBugs = []bug{}
