// What each kind costs, as its page says it: the requests of a Client are counted on their way to a server in memory.

package holdfast_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
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
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	return c.requests() - before
}

// oneWork returns what locks, does nothing and releases.
func oneWork[H holdfast.Handle](ctx context.Context, locker holdfast.Lockable[H]) func() error {
	return func() error {
		return holdfast.Do(ctx, locker, func(context.Context) error { return nil })
	}
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

		if _, err := p.Semaphore("n").TrySetPermits(ctx, 5); err != nil {
			t.Fatal(err)
		}
		says("docs/semaphore.md", "Taking permits and giving them back are {} requests", func() error {
			if err := p.Semaphore("n").Acquire(ctx, 3); err != nil {
				return err
			}
			return p.Semaphore("n").Release(ctx, 3)
		})
		if _, err := p.PermitSemaphore("p").TrySetPermits(ctx, 5); err != nil {
			t.Fatal(err)
		}
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

		if _, err := p.Latch("l").TrySetCount(ctx, 1); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 10)
		wait := func() { done <- q.Latch("l").Wait(ctx) }
		before := q.requests()
		go wait()
		first := q.requests()
		for range cap(done) - 1 {
			go wait()
		}
		rest := q.requests()
		if _, err := p.Latch("l").CountDown(ctx); err != nil {
			t.Fatal(err)
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
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
			held, err := p.Mutex("m").Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			before := q.requests()
			got := make(chan *holdfast.Lease)
			go func() {
				l, err := q.Mutex("m").Lock(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- l
			}()
			waits = q.requests() - before
			before, beforeP := q.requests(), p.requests()
			if err := held.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			next := <-got
			handed = q.requests() - before
			gives = p.requests() - beforeP
			time.Sleep(time.Second) // it has asked for its whole lease
			if err := next.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
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
			if err != nil {
				t.Fatal(err)
			}
			locked := all()
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d requests to lock, %d to release", locked-before, all()-locked)
			if before == 0 {
				continue // it began, and the servers did not know the scripts
			}
			doctest.Says(t, locked-before, "docs/quorum.md", "On three servers a Lock is {} requests")
			doctest.Says(t, all()-locked, "docs/quorum.md", "its Release {}")
		}
	})
}
