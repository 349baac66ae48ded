// Package holdfast provides distributed locks and other synchronizers on Redis: mutex, fair mutex,
// read/write lock, semaphores, countdown latch, barrier, leader election, work that is done once,
// multi-lock and quorum lock. Holdfast is for Go what Redisson is for Java. Where Redisson has the same
// kind of lock, Go and Java programs can share the locks.
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
// Or use [Do], which is shorter and harder to get wrong.
//
// # Choose
//
//   - [Client.Mutex] has one holder at a time. [Client.FairMutex] also serves callers in the order of
//     arrival.
//   - [Client.RWMutex] has any number of readers together, or one writer.
//   - [Client.PermitSemaphore] has at most n holders at a time, each with a lease. [Client.Semaphore] only
//     counts.
//   - [Client.Latch] lets callers wait until n things are done. [Client.Barrier] lets n parties wait for
//     each other.
//   - [Client.Shards] divides work among processes. Each part of the work has one owner.
//   - [Client.Limiter] allows at most n units in a period of time.
//   - [Client.Leader] lets one of the processes lead. If the leader stops, another process takes over.
//   - [Client.Once] does the work of a key once, and every caller gets the result. [Client.Tick] has one
//     winner for each time of a schedule.
//   - [Client.Striped] is n locks that serve any number of keys.
//   - [NewMultiLock] takes several locks at once. [NewQuorum] takes one lock on most of several servers.
//
// docs/choosing.md compares them.
//
// # Hold
//
// Lock returns a [Lease]. By default Holdfast renews the lease until you release it. If the process dies,
// its locks are free after at most 30 s. [Renewed] sets another length than 30 s. [Fixed] makes a lease
// that is not renewed.
//
// If the context of Lock carries no lease, Lock makes a new owner. A context that [Lease.Context] returns
// carries the lease, and Lock with that context, on the same name, re-enters the lock. Another process can
// take over a lock if it gets the [lease.Owner] from [Lease.Detach].
//
// # Lose
//
// A lease can be lost: Redis forgets the lock, an operator takes the lock away, or the process or the
// network stops for too long. Then the lease's context is cancelled, and its cause matches [ErrLost]. If
// Redis cannot be reached, the context is cancelled before the lease ends in Redis. If Redis has forgotten
// the lock, the context is cancelled at the next renewal. If the work goes on in spite of that, only the
// protected resource can stop it, by comparing the [Lease.Token] of each write.
//
// # What is promised
//
// What Holdfast promises depends on how Redis keeps its data: see docs/guarantees.md. [Client.Check] lists
// the settings of your Redis that break a promise. With [Replicas], a grant counts only after the given
// number of replicas has it.
package holdfast
