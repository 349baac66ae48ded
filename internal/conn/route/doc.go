// Package route knows which server a call goes to. Package conn has one Servers for each go-redis
// client that it is given, and asks it before each sending.
//
//	single     one server
//	failover   the master that the Sentinels name; they are asked every second, beside the calls
//	cluster    the master that has the slot, by the table of a go-redis client, which sends no
//	           scripts; a MOVED is believed at once, until the table has it
//
// Each has a server.Node for every server that it leads to, makes it, and ends it.
//
// # What holds at all times
//
//   - There is no Node of a cluster before there is a table: only the clients that go-redis makes for
//     the table have all the options of a server.
//   - One Node for each address. It is given up once nothing was sent to it for a while, nothing is
//     on it, and the table no longer names it (Sweep).
//   - Known and Elsewhere do no I/O. Node may wait: for the first table, and for a moment for the
//     Sentinels.
//   - When another master is named, or another server has what a failed one had, what was written
//     last may be forgotten: Events say so.
//
// # What may be called under which mutex
//
// cluster.mu and failover.mu guard what they stand above. Under cluster.mu a Node that was just made is
// closed, on which nothing is; otherwise nothing is called under them. Close waits for the goroutines
// that ask Sentinels or a cluster; a question that go-redis does not give up is left behind.
package route
