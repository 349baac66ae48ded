// What each kind costs, as its page says it: the requests of a Client are counted on their way to a server in
// memory. And what a lock costs its caller, in time and in memory.

package holdfast_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// counted is a process whose requests are counted.
type counted struct {
	*holdfast.Client
	way *redistest.FaultProxy
}

func newCounted(t *testing.T, mini *redistest.MiniServer) counted {
	t.Helper()
	way := mini.Proxy()
	way.OnCommand(func(c redistest.Command) redistest.Fault {
		if strings.EqualFold(c.Name, "subscribe") { // it is confirmed while the waiter asks, as a rule
			return redistest.Delay(time.Millisecond)
		}
		return redistest.Delay(2 * time.Millisecond)
	})
	return counted{clienttest.OpenClient(t, way.Client(t)), way}
}

// requests returns how many scripts it has run, once all that is under way has ended.
func (c counted) requests() int {
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
	return c.way.Count("EVALSHA") + c.way.Count("EVAL")
}

// cost returns how many requests f takes, once the server knows the scripts.
func (c counted) cost(t *testing.T, f func() error) int {
	t.Helper()
	var before int
	for range 2 {
		before = c.requests()
		must(t, f())
	}
	return c.requests() - before
}

// oneWork returns what locks, does nothing and releases.
func oneWork[H holdfast.Handle](ctx context.Context, locker holdfast.Lockable[H]) func() error {
	return func() error { return holdfast.Do(ctx, locker, nothing) }
}

func TestThePagesSayWhatALockAndItsReleaseCost(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		p := newCounted(t, redistest.Mini(t))
		ctx := t.Context()
		says := func(page, sentence string, f func() error) {
			t.Helper()
			doctest.Says(t, p.cost(t, f), page, sentence)
		}

		says("docs/mutex.md", "A lock and its release are {} requests", oneWork(ctx, p.Mutex("m")))
		says("docs/mutex.md", "and a nested lock in between makes that {}", func() error {
			return holdfast.Do(ctx, p.Mutex("m"), func(ctx context.Context) error { return oneWork(ctx, p.Mutex("m"))() })
		})
		says("docs/mutex.md", "A stripe costs {} as well", oneWork(ctx, p.Striped("s", 4).For("a")))
		says("docs/fairlock.md", "A lock and its release, when nobody waits, are {} requests", oneWork(ctx, p.FairMutex("f")))

		rw := p.RWMutex("rw")
		says("docs/rwmutex.md", "a read and its release are {} requests", oneWork(ctx, rw.RLocker()))
		says("docs/rwmutex.md", "a write and its release {}.", oneWork(ctx, rw))

		must(t, errOf(p.Semaphore("n").TrySetPermits(ctx, 5)))
		says("docs/semaphore.md", "Taking permits and giving them back are {} requests", func() error {
			if err := p.Semaphore("n").Acquire(ctx, 3); err != nil {
				return err
			}
			return p.Semaphore("n").Release(ctx, 3)
		})
		must(t, errOf(p.PermitSemaphore("p").TrySetPermits(ctx, 5)))
		says("docs/semaphore.md", "likewise {}, however many permits", oneWork(ctx, p.PermitSemaphore("p").Locker(3)))

		says("docs/multilock.md", "For three locks that is {} requests", oneWork(ctx, holdfast.NewMultiLock(p.Mutex("x"), p.Mutex("y"), p.Mutex("z"))))
	})
}

func TestThePagesSayWhatALatchCosts(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		mini := redistest.Mini(t)
		p, q := newCounted(t, mini), newCounted(t, mini)
		ctx := t.Context()
		round := func() error {
			if _, err := p.Latch("l").TrySetCount(ctx, 2); err != nil {
				return err
			}
			for range 2 {
				if _, err := p.Latch("l").CountDown(ctx); err != nil {
					return err
				}
			}
			return nil
		}
		doctest.Says(t, p.cost(t, round)-2, "docs/latch.md", "Setting it is {} request, and so is each count")
		doctest.Says(t, q.cost(t, func() error { return q.Latch("l").Wait(ctx) }), "docs/latch.md",
			"waiting for one that is at zero is {} request")

		must(t, errOf(p.Latch("l").TrySetCount(ctx, 1)))
		done := make(chan error, 10)
		wait := func() { done <- q.Latch("l").Wait(ctx) }
		before := q.requests()
		go wait()
		first := q.requests()
		for range cap(done) - 1 {
			go wait()
		}
		rest := q.requests()
		must(t, errOf(p.Latch("l").CountDown(ctx)))
		for range cap(done) {
			must(t, <-done)
		}
		doctest.Says(t, first-before, "docs/latch.md", "The first of a process to wait for it asks {} times")
		doctest.Says(t, (rest-first)/(cap(done)-1), "docs/latch.md", "each further one {} time")
		doctest.Says(t, q.requests()-rest, "docs/latch.md", "the message costs the process {} request more")
	})
}

// A process comes to a lock that another holds, and is handed it.
func TestThePagesSayWhatAHandOverCosts(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		mini := redistest.Mini(t)
		p, q := newCounted(t, mini), newCounted(t, mini)
		for _, c := range []counted{p, q} { // the server knows the scripts
			c.cost(t, oneWork(t.Context(), c.Mutex("m")))
		}
		var waits, handed, gives int
		for range 2 { // the second time the scripts of a hand-over are known too
			held := clienttest.Grab(t, p.Mutex("m"))
			before := q.requests()
			got := make(chan *holdfast.Lease)
			go func() {
				l, err := q.Mutex("m").Lock(t.Context())
				redistest.Check(t, err)
				got <- l
			}()
			waits = q.requests() - before
			before, beforeP := q.requests(), p.requests()
			clienttest.GiveBack(t, held)
			next := <-got
			handed = q.requests() - before
			gives = p.requests() - beforeP
			time.Sleep(time.Second) // it has asked for its whole lease
			clienttest.GiveBack(t, next)
			t.Logf("%d requests of the waiter before it sleeps, %d to begin; %d of the holder to release", waits, handed, gives)
			time.Sleep(time.Minute) // nobody has waited lately
		}
		doctest.Says(t, waits, "docs/mutex.md", "A process that finds it held asks {} times before it sleeps")
		doctest.Says(t, handed, "docs/mutex.md", "{} requests to begin")
		doctest.Says(t, gives, "docs/mutex.md", "The release that hands it over is {} requests")
	})
}

func TestThePagesSayWhatAQuorumCosts(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		var clients []*holdfast.Client
		var ways []counted
		var ahead *redistest.MiniServer
		for i := range 3 {
			mini := redistest.Mini(t)
			if i == 0 {
				ahead = mini
			}
			way := mini.Proxy()
			c := clienttest.OpenClient(t, way.Client(t, func(o *redis.Options) { o.Addr = string(rune('a'+i)) + ":6379" }))
			clients, ways = append(clients, c), append(ways, counted{c, way})
		}
		all := func() (n int) {
			for _, c := range ways {
				n += c.requests()
			}
			return n
		}
		q := holdfast.NewQuorum("q", clients)
		for range 2 {
			time.Sleep(time.Minute)
			ahead.SetTime(time.Now().Add(time.Second)) // the token of this one is the greatest
			before := all()
			l, err := q.Lock(t.Context())
			must(t, err)
			synctest.Wait() // for what it asks after the grant
			locked := all()
			must(t, l.Release(t.Context()))
			t.Logf("%d requests to lock, %d to release", locked-before, all()-locked)
			if before == 0 {
				continue // it began, and the servers did not know the scripts
			}
			doctest.Says(t, locked-before, "docs/quorum.md", "On three servers a Lock is {} requests")
			doctest.Says(t, all()-locked, "docs/quorum.md", "its Release {}")
		}
	})
}

// pairAllocations is the most allocations that locking and releasing an uncontended Mutex may make,
// including go-redis's own. Allocations are exact where times are not, so they show that the path
// of every lock has grown. Lower the number when the allocations become fewer.
const pairAllocations = 7

// heldBytes is the most heap that a held renewed lock may take before Context is called: its name,
// the Mutex, the Lease and everything that renews it.
const heldBytes = 400

// withoutRace skips what measures memory under the race detector, whose own books would count.
func withoutRace(t *testing.T) {
	if redistest.RaceDetector {
		t.Skip("the race detector takes memory of its own")
	}
}

// Locking and releasing an uncontended Mutex makes no more allocations than it did.
func TestMemory_UncontendedPair(t *testing.T) {
	withoutRace(t)
	server := redistest.Server(t)
	client := holdfast.New(server.Client(t))
	defer client.Close()
	m := client.Mutex(world.Name)
	least := math.Inf(1)
	// On a busy machine answers come late, and for each of those the end of its context is watched, which
	// allocates. So the least of many pairs counts.
	for range 200 {
		least = min(least, testing.AllocsPerRun(1, func() {
			l, err := m.Lock(t.Context())
			must(t, err)
			must(t, l.Release(t.Context()))
		}))
	}
	if least > pairAllocations {
		t.Errorf("%v allocations a pair, want at most %d", least, pairAllocations)
	}
}

// Held locks cost little heap and no goroutines.
func TestMemory_HeldLocks(t *testing.T) {
	withoutRace(t)
	const count = 20_000
	client := holdfast.New(redistest.Server(t).Client(t))
	defer client.Close()
	lockMany(t, client, "first", make([]*lease.Lease, 64)) // starts connections, wheel, goroutines
	leases := make([]*lease.Lease, count)

	goroutines, before := runtime.NumGoroutine(), heapInUse()
	lockMany(t, client, "order", leases)
	perLease := float64(heapInUse()-before) / count
	more := runtime.NumGoroutine() - goroutines
	t.Logf("%.0f B a lease, %d goroutines more", perLease, more)
	if perLease > heldBytes {
		t.Errorf("%.0f B a lease, want at most %d", perLease, heldBytes)
	}
	if more > 8 { // such as the goroutines that renew, of which there is one per server
		t.Errorf("%d goroutines more, for %d leases", more, count)
	}
	runtime.KeepAlive(leases)
}

// lockMany locks a name with that prefix for each element of leases.
func lockMany(t *testing.T, client *holdfast.Client, prefix string, leases []*lease.Lease) {
	t.Helper()
	clienttest.Each(len(leases), 64, func(i int) {
		l, err := client.Mutex(fmt.Sprintf("%s:%07d", prefix, i)).Lock(t.Context())
		redistest.Check(t, err)
		leases[i] = l
	})
}

// heapInUse returns how many bytes on the heap are in use.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // the second frees what sync.Pools hold
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
