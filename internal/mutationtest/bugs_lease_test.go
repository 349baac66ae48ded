// Bugs of what a lease tells its holder.

package mutationtest

var leaseBugs = []bug{}
