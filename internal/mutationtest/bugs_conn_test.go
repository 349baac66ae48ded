// Bugs of connections.

package mutationtest

var connBugs = []bug{}
