// These tests run on real servers, with many processes, killed processes, frozen servers, a slot on
// the move, too little memory, and missing rights.

package fairlock_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// section is what each holder does. It compares itself with the waiter that the holder before it
// saw first in the queue, notes which waiter is first now, and counts.
var section = redis.NewScript(`
local expected = redis.call('GET', 'check:expected')
if expected and expected ~= '' and expected ~= ARGV[1] then
  redis.call('INCR', 'check:inversions')
end
if tonumber(ARGV[2]) <= tonumber(redis.call('GET', 'check:token') or 0) then
  redis.call('INCR', 'check:tokens')
end
redis.call('SET', 'check:token', ARGV[2])
redis.call('SET', 'check:expected', redis.call('ZRANGE', KEYS[1], 0, 0)[1] or '')
return redis.call('INCR', 'check:grants')`)

// taker is a process whose goroutines lock and unlock until there are enough grants in all
// processes together.
func taker(c *redistest.ChildContext) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	grants, _ := strconv.Atoi(os.Getenv("GRANTS"))
	m := client.FairMutex(name)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				l, err := m.Lock(c)
				if err != nil {
					c.Say("failed: %v", err)
					return
				}
				n, err := section.Run(c, rdb, []string{queueKey}, l.Owner().String(), l.Token()).Int()
				if err == nil {
					err = l.Release(c)
				}
				if err != nil {
					c.Say("failed: %v", err)
					return
				}
				if n >= grants {
					return
				}
			}
		})
	}
	all.Wait()
	c.Say("done")
}

// waiter is a process that locks once, and unlocks when the test tells it to.
func waiter(c *redistest.ChildContext) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	l, err := client.FairMutex(name).Lock(c)
	if err != nil {
		c.Say("failed: %v", err)
		return
	}
	c.Say("granted %d", l.Token())
	c.Next()
	if err := l.Release(c); err != nil {
		c.Say("failed: %v", err)
	}
	c.Say("released")
}

// The waiter that is first in the queue while the lock is held is the next to get the lock, over
// eight processes.
func TestNoInversions(t *testing.T) {
	server := redistest.Server(t)
	grants := redistest.CountOfWork(t, 100_000)
	env := map[string]string{"ADDR": server.Addr(), "GRANTS": strconv.Itoa(grants)}
	var takers []*redistest.ChildProc
	started := time.Now()
	for range 8 {
		takers = append(takers, redistest.Start(t, "taker", env))
	}
	for _, c := range takers {
		c.Expect("done")
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	took := time.Since(started)
	rdb := server.Admin()
	if n := rdb.Get(t.Context(), "check:grants").Val(); n == "" {
		t.Fatal("no grants")
	} else {
		t.Logf("%s grants in %v", n, took)
	}
	for _, key := range []string{"check:inversions", "check:tokens"} {
		if n := rdb.Get(t.Context(), key).Val(); n != "" {
			t.Errorf("%s: %s", key, n)
		}
	}
	redistest.LeftBehind(t, rdb, world.AllTokens, "check:")
}

// The first waiter is killed. The next waiter gets the lock when the place of the first has run
// out.
func TestTheFirstIsKilled(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	client := holdfast.New(server.Client(t))
	defer client.Close()
	m := client.FairMutex(name)
	l, err := m.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var waiters []*redistest.ChildProc
	for i := range 4 {
		waiters = append(waiters, redistest.Start(t, "waiter", map[string]string{"ADDR": server.Addr()}))
		waitFor(t, server, i+1)
	}
	pulse := redistest.FeelPulse(t)
	waiters[0].Kill()
	killed := time.Now()
	waiters[2].Freeze()
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	waiters[1].Expect("granted")
	pulse.Within(t, "the next one's grant after the first was killed", killed, queueLease+100*time.Millisecond)
	time.Sleep(time.Until(killed.Add(queueLease + 200*time.Millisecond)))
	waiters[1].Send("go on")
	waiters[3].Expect("granted") // the third process is frozen and does not answer
	waiters[3].Send("go on")
	waiters[3].Expect("released")
	waiters[2].Thaw()
	waiters[2].Expect("granted")
	waiters[2].Send("go on")
	waiters[2].Expect("released")
}

// waitFor waits until n waiters are in the queue.
func waitFor(t testing.TB, server *redistest.Proc, n int) {
	t.Helper()
	redistest.Eventually(t, 30*time.Second, "the queue", func() error {
		if got := server.Admin().ZCard(context.Background(), queueKey).Val(); got != int64(n) {
			return fmt.Errorf("%d in the queue, want %d", got, n)
		}
		return nil
	})
}

// The server stands still for longer than places are kept. No waiter is forgotten. One waiter may
// be served before the others: the first waiter that Redis hears of, if the lock is released then.
// At that moment Redis does not know of the other waiters any more.
func TestTheServerStandsStill(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	a, b := holdfast.New(server.Client(t)), holdfast.New(server.Client(t))
	defer a.Close()
	defer b.Close()
	l, err := a.FairMutex(name).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const waiters = 20
	var mu sync.Mutex
	var order []int
	var all sync.WaitGroup
	wait := func(i int) {
		l, err := b.FairMutex(name).Lock(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		order = append(order, i)
		mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for i := range waiters {
		all.Go(func() { wait(i) })
		waitFor(t, server, i+1)
	}
	server.Freeze()
	time.Sleep(queueLease + time.Second)
	all.Go(func() { wait(waiters) }) // a newcomer, which asks as soon as any other waiter
	time.Sleep(500 * time.Millisecond)
	server.Thaw()
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if len(order) != waiters+1 || !slices.IsSorted(order[1:]) {
		t.Errorf("granted in the order %v", order)
	}
}

// What an acquisition costs the server does not depend on the number of waiters.
func TestServerTime(t *testing.T) {
	server := redistest.Server(t)
	// The server's clock goes on while other processes have the processor, so the smallest
	// measurement counts.
	few, many := usecPerCall(t, server, 10), usecPerCall(t, server, 5000)
	for range 2 {
		if many <= 3*few {
			break
		}
		few, many = min(few, usecPerCall(t, server, 10)), min(many, usecPerCall(t, server, 5000))
	}
	t.Logf("10 waiters: %.1f us a call, 5 000: %.1f us", few, many)
	if many > 3*few {
		t.Errorf("10 waiters: %.1f us a call, 5 000: %.1f us", few, many)
	}
}

// usecPerCall returns the server's time for each script while this many waiters wait. Each waiter
// goes to the end of the queue after its turn.
func usecPerCall(t *testing.T, server *redistest.Proc, waiters int) float64 {
	rdb := server.Client(t)
	client := holdfast.New(rdb)
	defer client.Close()
	m := client.FairMutex(name)
	l, err := m.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	turns := make(chan struct{})
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			for {
				l, err := m.Lock(ctx)
				if err != nil {
					return
				}
				select {
				case turns <- struct{}{}:
				case <-ctx.Done():
				}
				_ = l.Release(t.Context())
			}
		})
	}
	waitFor(t, server, waiters)
	server.Admin().ConfigResetStat(t.Context())
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range redistest.CountOfWork(t, 10_000) {
		<-turns
	}
	stats := server.Admin().InfoMap(t.Context(), "commandstats").Val()["Commandstats"]["cmdstat_evalsha"]
	cancel()
	all.Wait()
	_, text, _ := strings.Cut(stats, "usec_per_call=")
	text, _, _ = strings.Cut(text, ",")
	usec, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("%q: %v", stats, err)
	}
	return usec
}

// BenchmarkHeartbeat measures what it costs the server that a process keeps the places of its
// waiters: for each place that is kept, for each waiter and second, and how long one command takes.
func BenchmarkHeartbeat(b *testing.B) {
	for _, waiters := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(waiters), func(b *testing.B) {
			server := redistest.Server(b)
			client := holdfast.New(server.Client(b))
			defer client.Close()
			m := client.FairMutex(name)
			l, err := m.Lock(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			var all sync.WaitGroup
			for range waiters {
				all.Go(func() { _, _ = m.Lock(ctx) })
			}
			waitFor(b, server, waiters)
			time.Sleep(2 * pollBound)
			server.Admin().ConfigResetStat(b.Context())
			begun := time.Now()
			for b.Loop() {
				time.Sleep(4 * pollBound)
			}
			stats := server.Admin().InfoMap(b.Context(), "commandstats").Val()["Commandstats"]["cmdstat_evalsha"]
			seconds := time.Since(begun).Seconds()
			var calls, usec, each float64
			if _, err := fmt.Sscanf(stats, "calls=%f,usec=%f,usec_per_call=%f", &calls, &usec, &each); err != nil {
				b.Fatalf("%q: %v", stats, err)
			}
			b.ReportMetric(usec/seconds/float64(waiters), "server-us/waiter/s")
			b.ReportMetric(each, "server-us/command")
			b.ReportMetric(calls/seconds, "commands/s")
			cancel()
			all.Wait()
			_ = l.Release(b.Context())
		})
	}
}

// The lock is on one server and the queue on the other. A release goes on, and the queue goes on
// when the move is done.
func TestASlotOnTheMove(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 2, 0)
	rdb := cluster.Client(t)
	client := holdfast.New(rdb)
	defer client.Close()
	m := client.FairMutex(name)
	l, err := m.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	granted := make(chan *lease.Lease, 1)
	go func() {
		l, err := m.Lock(t.Context())
		if err != nil {
			t.Error(err)
		}
		granted <- l
	}()
	redistest.Eventually(t, 10*time.Second, "the queue", func() error {
		if n, err := m.QueueLength(t.Context()); n != 1 {
			return fmt.Errorf("%d in the queue (%v)", n, err)
		}
		return nil
	})
	move := cluster.OpenSlot(name)
	move.MoveKeys(name)
	pulse := redistest.FeelPulse(t)
	started := time.Now()
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	pulse.Within(t, "the release", started, time.Second)
	if n := rdb.Exists(t.Context(), name).Val(); n != 0 {
		t.Error("the lock is there still")
	}
	move.Finish()
	next := <-granted
	if next == nil {
		return
	}
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// Memory is short. The waiters go on waiting, and the lock passes between them. A newcomer gets an
// error.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	client := holdfast.New(server.Client(t))
	defer client.Close()
	m := client.FairMutex(name)
	l, err := m.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		l, err := m.Lock(t.Context())
		if err == nil {
			err = l.Release(t.Context())
		}
		done <- err
	}()
	waitFor(t, server, 1)
	server.Admin().ConfigSet(t.Context(), "maxmemory", "1")
	_, err = m.Lock(t.Context())
	world.WantErr(t, err, holdfast.ErrOutOfMemory)
	_, err = m.TryLock(t.Context())
	world.WantErr(t, err, holdfast.ErrBusy)
	time.Sleep(3 * time.Second) // time for polls
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("the waiter: %v", err)
	}
	_, err = m.TryLock(t.Context())
	world.WantErr(t, err, holdfast.ErrOutOfMemory)
	redistest.Eventually(t, 10*time.Second, "free", func() error {
		if n := server.Admin().Exists(t.Context(), name, queueKey, aliveKey).Val(); n != 0 {
			return fmt.Errorf("%d keys are left", n)
		}
		return nil
	})
}

// A user without rights on the queue gets an error.
func TestDenied(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	admin := server.Admin()
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "poor", "on", ">pw", "~desk", "~redisson_*", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	client := holdfast.New(server.Client(t, func(o *redis.Options) { o.Username, o.Password = "poor", "pw" }))
	defer client.Close()
	_, err := client.FairMutex(name).Lock(t.Context())
	world.WantErr(t, err, holdfast.ErrDenied)
	redistest.Eventually(t, 10*time.Second, "nothing left", func() error {
		if n := admin.DBSize(t.Context()).Val(); n != 0 {
			return fmt.Errorf("%d keys are left", n)
		}
		return nil
	})
}
