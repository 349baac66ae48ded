// Package holdfast provides distributed locks and other synchronizers on Redis: mutex, fair
// mutex, read/write lock, semaphores, countdown latch, barrier, leader election, work that is done once,
// multi-lock and quorum lock.
// It is for Go what Redisson is for Java, and shares its locks with Java where Redisson has a
// layout for them.
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
//   - [Client.Mutex]: one holder at a time. [Client.FairMutex]: in the order of arrival.
//   - [Client.RWMutex]: readers together, or one writer.
//   - [Client.PermitSemaphore]: n holders at a time, leased. [Client.Semaphore]: only counted.
//   - [Client.Latch]: wait until n things are done. [Client.Barrier]: n parties go on together.
//   - [Client.Shards]: work divided among processes, each part with one owner.
//   - [Client.Limiter]: at most n units in a time.
//   - [Client.Leader]: one of the processes leads, and the next takes over.
//   - [Client.Once]: the work of a key is done once, and everyone gets its result. [Client.Tick]: one winner
//     for each time of a schedule.
//   - [Client.Striped]: n locks for any number of keys.
//   - [NewMultiLock]: several locks at once. [NewQuorum]: one lock on most of several servers.
//
// docs/choosing.md says more.
//
// # Hold
//
// Lock returns a [Lease]. By default Holdfast renews the lease until you release it. If the
// process dies, its locks are free after at most 30 s. [Renewed] sets another length,
// [Fixed] a lease that is not renewed.
//
// Lock with a plain context makes a new owner. A context made by [Lease.Context] carries the
// lease, and Lock with it on the same name re-enters. Another process can take a lock over by
// its [lease.Owner]: see [Lease.Detach].
//
// # Lose
//
// A lease can be lost: Redis forgets it, an operator takes it, or the process or the network
// stands still for too long. Then the lease's context is cancelled, and its cause matches
// [ErrLost]. If Redis is out of reach, that happens before the lease ends in Redis; if Redis
// has forgotten the lock, at the next renewal. If the work goes on all the same, only the
// protected resource can stop it, by its [Lease.Token].
//
// # What is promised
//
// That depends on how Redis keeps its data: see docs/guarantees.md. [Client.Check] lists the
// settings of a given Redis that void a promise. With [Replicas], a grant counts only after
// that many replicas have it.
package holdfast
