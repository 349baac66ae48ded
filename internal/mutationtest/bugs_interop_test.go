// Bugs of what Holdfast shares with Redisson.

package mutationtest

var interopBugs = []bug{}
