// A pair is a kind of Holdfast and the kind of Redisson that shares its layout.

package interop

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// taker takes something, and returns a function that gives it back.
type taker func(ctx context.Context) (giveBack func(ctx context.Context) error, err error)

// side is one way to hold a thing, in both languages.
type side struct {
	java string // the word of java/.../Commands.java
	take func(client *holdfast.Client, name string) taker
	// These are the weight of the turn in the guard, and the weight that may be in beside it.
	weight, room int64
}

// pair is two kinds that share a layout.
type pair struct {
	name  string
	since string // the first version of Redisson that has it
	sides []side // one side, or the sides of readers and writers
	setUp func(w *world, client *holdfast.Client, name string)
	// Neither language hears the other's release. It asks again when a lease ends or a poll is due,
	// so there are fewer turns in a given time.
	deaf bool
	// This is Go's lease, where a thread of Java waits for its end. 0 is the default.
	lease time.Duration
	// Short runs show it on a cluster, too.
	clustered bool
	// Java stands outside of Go's queue, and is in when that queue is empty.
	unshared bool
	// Readers must take this rest to give writers a chance. Readers of Java that overlap without a
	// gap keep out every writer, including Java's.
	rest time.Duration
}

// deafLease is short, because each wait for the end of the lease takes that long.
const deafLease = 2 * time.Second

// A writer weighs more than all readers together.
const (
	writerWeight = 1 << 32
	anyReaders   = writerWeight - 1
)

func leaseTaker(lock locking) taker {
	return func(ctx context.Context) (func(context.Context) error, error) {
		l, err := lock(ctx)
		if err != nil {
			return nil, err
		}
		return l.Release, nil
	}
}

func takeMutex(c *holdfast.Client, name string) taker { return leaseTaker(c.Mutex(name).Lock) }

func takeFencedMutex(c *holdfast.Client, name string) taker {
	return leaseTaker(c.Mutex(name, holdfast.JavaTokens()).Lock)
}

func takeFairMutex(c *holdfast.Client, name string) taker { return leaseTaker(c.FairMutex(name).Lock) }
func takeRead(c *holdfast.Client, name string) taker      { return leaseTaker(c.RWMutex(name).RLock) }
func takeWrite(c *holdfast.Client, name string) taker     { return leaseTaker(c.RWMutex(name).Lock) }

func takePermit(client *holdfast.Client, name string) taker {
	p := client.PermitSemaphore(name)
	return leaseTaker(func(ctx context.Context) (*holdfast.Lease, error) { return p.Acquire(ctx, 1) })
}

func takeSemaphore(client *holdfast.Client, name string) taker {
	s := client.Semaphore(name)
	return func(ctx context.Context) (func(context.Context) error, error) {
		if err := s.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error { return s.Release(ctx, 1) }, nil
	}
}

func exclusive(java string, take func(*holdfast.Client, string) taker) []side {
	return []side{{java: java, take: take, weight: 1, room: 0}}
}

func setSemaphore(n int) func(*world, *holdfast.Client, string) {
	return func(w *world, client *holdfast.Client, name string) {
		redistest.Must(w.t, redistest.Err(client.Semaphore(name).TrySetPermits(w.ctx, n)))
	}
}

func setPermits(n int) func(*world, *holdfast.Client, string) {
	return func(w *world, client *holdfast.Client, name string) {
		redistest.Must(w.t, redistest.Err(client.PermitSemaphore(name).TrySetPermits(w.ctx, n)))
	}
}

var mutexPair = pair{name: "Mutex / RLock", since: Oldest, clustered: true, sides: exclusive("lock", takeMutex)}

// pairs has all the kinds that share a layout.
var pairs = []pair{
	mutexPair,
	{name: "Mutex / RFencedLock", since: "3.19", sides: exclusive("fenced", takeFencedMutex)},
	{name: "Mutex / RLock that is not reentrant", since: "4.4", sides: exclusive("nonreentrant", takeMutex)},
	{name: "Mutex / RSpinLock", since: "3.15", sides: exclusive("spin", takeMutex), deaf: true},
	{name: "Mutex / RFairLock", since: Last3, sides: exclusive("fair", takeMutex), deaf: true, lease: deafLease},
	{name: "FairMutex / RLock", since: Last3, sides: exclusive("lock", takeFairMutex), unshared: true},
	{name: "FairMutex / RFairLock", since: Last3, sides: exclusive("fair", takeFairMutex), deaf: true, lease: deafLease},
	{name: "RWMutex / RReadWriteLock, writers", since: Last3, sides: exclusive("write", takeWrite)},
	{name: "RWMutex / RReadWriteLock, both", since: Last3, clustered: true, rest: 100 * time.Millisecond, sides: []side{
		{java: "read", take: takeRead, weight: 1, room: anyReaders},
		{java: "write", take: takeWrite, weight: writerWeight, room: 0},
	}},
	{name: "Semaphore(1) / RSemaphore", since: Last3, clustered: true, setUp: setSemaphore(1),
		sides: exclusive("semaphore", takeSemaphore)},
	{name: "Semaphore(3) / RSemaphore", since: Last3, setUp: setSemaphore(3),
		sides: []side{{java: "semaphore", take: takeSemaphore, weight: 1, room: 2}}},
	{name: "PermitSemaphore(1) / RPermitExpirable...", since: Last3, clustered: true, setUp: setPermits(1),
		sides: exclusive("permits", takePermit)},
	{name: "PermitSemaphore(3) / RPermitExpirable...", since: Last3, setUp: setPermits(3),
		sides: []side{{java: "permits", take: takePermit, weight: 1, room: 2}}},
}
