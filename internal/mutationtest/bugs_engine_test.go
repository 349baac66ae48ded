// Bugs of the waiting and the passing on.

package mutationtest

var engineBugs = []bug{}
