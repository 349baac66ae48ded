// Figures in real time, which belong to the long run: a process that is starved of the processor, waiters that
// give up soon, turns across a planned failover. docs/reports/found.md has what they were.

package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// runStarved holds four locks while BUSY goroutines keep its one processor busy. Beside them a plain loop prolongs
// a key every third of the lease, which is what anybody could do. It says how many leases were lost, and whether
// the key was.
func runStarved(c *redistest.ChildContext) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("LOCKS")})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	length, _ := time.ParseDuration(os.Getenv("LEASE"))
	busy, _ := strconv.Atoi(os.Getenv("BUSY"))
	rdb.Set(c, "control", "", length)
	var leases []*holdfast.Lease
	for i := range 4 {
		l, err := client.Mutex(fmt.Sprint("starved ", i), holdfast.Renewed(length)).Lock(c)
		if err != nil {
			c.Say("error %v", err)
			return
		}
		leases = append(leases, l)
	}
	var over atomic.Bool
	for range busy {
		go func() {
			for !over.Load() { // it works, and does not wait
			}
		}()
	}
	gone := false
	for until := time.Now().Add(max(4*length, 20*time.Second)); time.Now().Before(until); {
		kept, err := rdb.PExpire(c, "control", length).Result()
		gone = gone || err != nil || !kept
		time.Sleep(length / 3)
	}
	over.Store(true)
	lost := 0
	for _, l := range leases {
		if l.Err() != nil {
			lost++
		}
	}
	c.Say("lost %d, control lost %t", lost, gone)
}

// A process whose goroutines keep its one processor busy keeps its leases as long as a plain loop keeps a key.
func TestAStarvedProcessKeepsItsLeases(t *testing.T) {
	redistest.LongRun(t)
	s := redistest.Server(t)
	for _, tc := range []struct {
		lease time.Duration
		busy  int
	}{{3 * time.Second, 40}, {6 * time.Second, 40}, {15 * time.Second, 100}} {
		child := redistest.Start(t, "starved", map[string]string{
			"LOCKS": s.Addr(), "LEASE": tc.lease.String(), "BUSY": strconv.Itoa(tc.busy), "GOMAXPROCS": "1",
		})
		var said string
		redistest.Eventually(t, 2*time.Minute, "the child's word", func() (err error) {
			line, ok := child.TryLine(time.Second)
			if said = line; !ok {
				return fmt.Errorf("nothing yet")
			}
			return nil
		})
		t.Logf("lease %v, %d busy goroutines: %s", tc.lease, tc.busy, said)
		if !strings.HasPrefix(said, "lost 0") && strings.HasSuffix(said, "false") {
			t.Errorf("lease %v, %d busy goroutines: %s", tc.lease, tc.busy, said)
		}
		child.Kill()
	}
}

// Many callers give up within 20 ms, one is patient. It is never kept waiting by a lock that nobody has.
func TestWaitersThatGiveUpKeepNobodyWaiting(t *testing.T) {
	redistest.LongRun(t)
	s := redistest.Server(t)
	for _, kind := range lockertest.Kinds {
		prepared := clienttest.OpenClient(t, s.Client(t))
		if kind.Prepare != nil {
			redistest.Must(t, kind.Prepare(t.Context(), prepared, kind.Name))
		}
		rival := kind.Locker
		if kind.Rival != nil {
			rival = kind.Rival
		}
		over, stop := context.WithTimeout(t.Context(), 6*time.Second)
		var inside, out atomic.Int64 // since when nobody is in, in ns
		var longest time.Duration
		var mu sync.Mutex
		turn := func(ctx context.Context, m holdfast.Locker) bool {
			l, err := m.Lock(ctx)
			if err != nil {
				return false
			}
			if since := out.Swap(0); since != 0 {
				mu.Lock()
				longest = max(longest, time.Since(time.Unix(0, since)))
				mu.Unlock()
			}
			inside.Add(1)
			time.Sleep(2 * time.Millisecond)
			if inside.Add(-1) == 0 {
				out.Store(time.Now().UnixNano())
			}
			_ = l.Release(context.Background())
			return true
		}
		var all sync.WaitGroup
		var grants atomic.Int64
		for range 3 {
			c := clienttest.OpenClient(t, s.Client(t))
			for range 6 {
				all.Go(func() {
					for over.Err() == nil {
						ctx, cancel := context.WithTimeout(over, rand.N(20*time.Millisecond))
						if turn(ctx, rival(c, kind.Name)) {
							grants.Add(1)
						}
						cancel()
					}
				})
			}
		}
		var waits []time.Duration
		for over.Err() == nil {
			began := time.Now()
			if turn(over, rival(prepared, kind.Name)) {
				waits = append(waits, time.Since(began))
			}
		}
		all.Wait()
		stop()
		t.Logf("%s: %d grants, %d of them to the patient one, who waited for %v at most; nobody was in for %v at most",
			kind.Name, grants.Load()+int64(len(waits)), len(waits), slices.Max(waits).Round(time.Millisecond), longest.Round(time.Millisecond))
		if longest > 250*time.Millisecond {
			t.Errorf("%s: nobody was in for %v", kind.Name, longest)
		}
	}
}

// A planned failover behind Sentinel, in the midst of turns of two processes: from the third second on they have at
// least half as many as before.
func TestTurnsGoOnAcrossAPlannedFailover(t *testing.T) {
	redistest.LongRun(t)
	s := redistest.Sentinel(t)
	for _, fair := range []bool{false, true} {
		over, stop := context.WithCancel(t.Context())
		var turns atomic.Int64
		var all sync.WaitGroup
		for range 2 {
			c := clienttest.OpenClient(t, s.Client(t))
			var m holdfast.Locker = c.Mutex("turns")
			if fair {
				m = c.FairMutex("turns")
			}
			for range 3 {
				all.Go(func() {
					for over.Err() == nil {
						if l, err := m.Lock(over); err == nil {
							turns.Add(1)
							time.Sleep(2 * time.Millisecond)
							_ = l.Release(context.Background())
						}
					}
				})
			}
		}
		var seconds []int64
		second := func() {
			before := turns.Load()
			time.Sleep(time.Second)
			seconds = append(seconds, turns.Load()-before)
		}
		for range 4 {
			second()
		}
		failing := make(chan struct{})
		go func() { defer close(failing); s.Failover() }()
		for range 12 {
			second()
		}
		<-failing
		stop()
		all.Wait()
		t.Logf("fair: %t; turns in each second, the failover is asked for after the fourth: %v", fair, seconds)
		before, after := seconds[3], slices.Min(seconds[9:])
		if after < before/2 {
			t.Errorf("fair: %t: %d turns a second before, and %d in a second after", fair, before, after)
		}
	}
}
