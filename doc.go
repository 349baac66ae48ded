// Package holdfast lets the processes that share a Redis take turns: the
// synchronizers that Redisson gives Java, for Go, in the same layout.
//
//	client := holdfast.New(rdb) // a go-redis client: single, Sentinel or Cluster
//	defer client.Close()
//
//	l, err := client.Mutex("orders:42").Lock(ctx) // ctx bounds the wait
//	if err != nil {
//		return err
//	}
//	defer l.Release(ctx) // right even when ctx is already cancelled
//
//	held := l.Context(ctx)         // cancelled if the lock is lost
//	return charge(held, l.Token()) // a fencing token for the resource
//
// Or, shorter and harder to get wrong, [Do].
//
// # Choose
//
//   - [Client.Mutex]: one at a time. [Client.FairMutex]: in the order of arrival.
//   - [Client.RWMutex]: readers together, or one writer.
//   - [Client.PermitSemaphore]: n at a time, leased. [Client.Semaphore]: counted only.
//   - [Client.Latch]: wait until n things are done.
//   - [Client.Striped]: n locks for any number of keys.
//   - [NewMultiLock]: several at once. [NewQuorum]: one, on most of several servers.
//
// docs/choosing.md says more.
//
// # Hold
//
// What is granted is a [Lease]. By default it is renewed until it is released,
// so that it outlives neither the work nor the process: a process that dies
// holds its locks for 30 s at most. [Renewed] sets another length, [Fixed] a
// lease that is not renewed.
//
// A plain context is a new owner. A context made by [Lease.Context] carries the
// lease, and locking the same name with it re-enters. A [lease.Owner] can be
// printed, handed to another process, and attached to there.
//
// # Lose
//
// A lease can be lost: Redis forgets it, an operator takes it, the process or
// the network stands still for too long. Then its context is cancelled with
// cause [ErrLost]: before the lease runs out in Redis, also when Redis cannot be
// reached; and where Redis has forgotten it, by the next renewal. What the work
// does after that, only the protected resource can refuse, by [Lease.Token].
//
// # What is promised
//
// It depends on the Redis behind it; docs/guarantees.md says what. [Client.Check]
// tells what of a given Redis voids it. [Replicas] has grants count only once
// replicas have them.
package holdfast
