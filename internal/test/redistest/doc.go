// Package redistest is the harness of every package's tests: servers to talk to, faults to
// inject, and the checks that nothing is left behind.
//
//   - [Server], [Sentinel] and [Cluster] run plain redis-server processes on loopback; a test
//     can kill, freeze, restart and fail them over.
//   - [Mini] is an embedded server without sockets, for virtual time in a testing/synctest
//     bubble.
//   - [Proxy] sits between a client and a server and loses, delays, halves or doubles exactly
//     the command that a rule picks; [MiniServer.Proxy] is the same one inside a bubble.
//   - [Main] is every package's TestMain; [LeftBehind] ends a test.
//   - [Child] and [Start] run a part of the test binary as a process of its own, so that a
//     holder can be killed or stopped.
//
// It is imported by _test.go files, by the shared test suites, and by cmd/holdfast-torture,
// which is a test too.
//
// # Environment
//
//   - HOLDFAST_SERVERS=1 runs the tests on real servers and in real time, and a missing binary
//     is a failure. Without it they are skipped, and [Main] says so in one line.
//   - HOLDFAST_REDIS_SERVER names the server binary (Redis 6 or later, or valkey-server); the
//     default is redis-server from PATH.
//   - HOLDFAST_LONG=1 also runs the tests with bounds in real time ([LongRun]), and the full
//     counts ([Count]); HOLDFAST_LONG=bounds runs the former without the latter.
package redistest
