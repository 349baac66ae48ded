// Package dial is how a connection is made, and what go-redis is given as one. It knows nothing of
// scripts and calls; packages server and route use it.
//
// What runs of the user's while a connection is made may block or panic; neither holds up a lock or
// Close, nor ends the process:
//
//	Guarded, Within, Bounded   a function of the user's, its Dialer above all
//	Feed, Feeds                credentials that come as a stream, by one subscription
//
// What go-redis is given, each a net.Conn around the last:
//
//	Greet       reports what a server says that turns a connection away
//	timed       for a connection that takes no deadlines: timers take their place
//	Stillborn   in place of a connection that could not be made, so that go-redis prints nothing
//	Looker      beside a connection: reads without going to sleep
//
// A Feed and a timed connection have a mutex, under which nothing is called. The user's functions are
// called on a goroutine that is left behind when the context ends.
package dial
