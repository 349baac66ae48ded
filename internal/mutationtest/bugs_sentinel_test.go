// Bugs of Sentinel, subscriptions and callbacks.

package mutationtest

var sentinelBugs = []bug{}
