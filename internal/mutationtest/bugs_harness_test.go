// Bugs of what the suite's own bounds are there for.

package mutationtest

var harnessBugs = []bug{}
