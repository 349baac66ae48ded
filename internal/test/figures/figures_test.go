package figures

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

func TestMain(m *testing.M) { redistest.Main(m, redistest.Child("starved", runStarved)) }

// Each figure is what docs/reports/found.md says it has to be, on a machine that does nothing else.
func TestFigures(t *testing.T) {
	redistest.RealTime(t)
	if os.Getenv("HOLDFAST_LONG") == "" {
		t.Skip("belongs to the long run")
	}
	t.Run("starved", starvedProcesses)
	t.Run("impatient", impatientWaiters)
	t.Run("failover", plannedFailover)
}

// verdict logs a figure beside what it has to be, in the form that bench/cmd/ugly reads.
func verdict(t *testing.T, what, goal string, met bool, format string, args ...any) {
	t.Helper()
	said := "met"
	if !met {
		said = "not met"
		t.Errorf("%s: %s, and it has to be: %s", what, fmt.Sprintf(format, args...), goal)
	}
	t.Logf("figure: %s | %s | %s | %s", what, goal, fmt.Sprintf(format, args...), said)
}

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
	control := "kept"
	for until := time.Now().Add(max(4*length, 20*time.Second)); time.Now().Before(until); {
		if kept, err := rdb.PExpire(c, "control", length).Result(); err != nil || !kept {
			control = "lost"
		}
		time.Sleep(length / 3)
	}
	over.Store(true)
	lost := 0
	for _, l := range leases {
		if l.Err() != nil {
			lost++
		}
	}
	c.Say("%d of %d lost, the control %s", lost, len(leases), control)
}

func starvedProcesses(t *testing.T) {
	for _, tc := range []struct {
		lease time.Duration
		busy  int
	}{{3 * time.Second, 40}, {6 * time.Second, 40}, {15 * time.Second, 100}} {
		child := redistest.Start(t, "starved", map[string]string{
			"LOCKS": redistest.Server(t).Addr(), "LEASE": tc.lease.String(), "BUSY": strconv.Itoa(tc.busy), "GOMAXPROCS": "1",
		})
		var said string
		redistest.Eventually(t, 2*time.Minute, "the child's word", func() (err error) {
			line, ok := child.TryLine(time.Second)
			if said = line; !ok {
				return fmt.Errorf("nothing yet")
			}
			return nil
		})
		child.Kill()
		// Where the plain loop lost its key, nothing could have been kept.
		met := strings.HasPrefix(said, "0 of") || strings.HasSuffix(said, "control lost")
		verdict(t, fmt.Sprintf("leases of %v beside %d busy goroutines on one processor", tc.lease, tc.busy),
			"kept, as the control is", met, "%s", said)
	}
}

// gaps notes for how long nobody was in.
type gaps struct {
	mu      sync.Mutex
	inside  int
	left    time.Time // when the last one left; zero before
	longest time.Duration
}

func (g *gaps) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside++; g.inside == 1 && !g.left.IsZero() {
		g.longest = max(g.longest, time.Since(g.left))
	}
}

func (g *gaps) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.left = time.Now()
}

// turn locks, works for 2 ms and releases.
func (g *gaps) turn(ctx context.Context, m holdfast.Locker) bool {
	l, err := m.Lock(ctx)
	if err != nil {
		return false
	}
	g.enter()
	time.Sleep(2 * time.Millisecond)
	g.leave()
	_ = l.Release(context.WithoutCancel(ctx))
	return true
}

// Many callers give up within 20 ms, one is patient. Nobody is ever kept waiting by a lock that nobody has.
func impatientWaiters(t *testing.T) {
	s := redistest.Server(t)
	for _, kind := range lockertest.Kinds {
		if kind.Rival != nil {
			continue // its rival is a kind as well
		}
		prepared := clienttest.OpenClient(t, s.Client(t))
		if kind.Prepare != nil {
			redistest.Must(t, kind.Prepare(t.Context(), prepared, kind.Name))
		}
		var g gaps
		over, stop := context.WithTimeout(t.Context(), 6*time.Second)
		var all sync.WaitGroup
		for range 3 {
			c := clienttest.OpenClient(t, s.Client(t))
			for range 6 {
				all.Go(func() {
					for over.Err() == nil {
						ctx, cancel := context.WithTimeout(over, rand.N(20*time.Millisecond))
						g.turn(ctx, kind.Locker(c, kind.Name))
						cancel()
					}
				})
			}
		}
		patient := 0
		for over.Err() == nil {
			if g.turn(over, kind.Locker(prepared, kind.Name)) {
				patient++
			}
		}
		all.Wait()
		stop()
		verdict(t, fmt.Sprintf("%s, waiters that give up within 20 ms: nobody in", kind.Name), "50 ms at most",
			g.longest <= 50*time.Millisecond, "%v; %d turns of a patient one", g.longest.Round(time.Millisecond), patient)
	}
}

// turnsOf are turns of kinds that callers of two processes take.
var turnsOf = map[string]func(ctx context.Context, c *holdfast.Client) error{
	"Mutex":     func(ctx context.Context, c *holdfast.Client) error { return oneTurn(ctx, c.Mutex("turns")) },
	"FairMutex": func(ctx context.Context, c *holdfast.Client) error { return oneTurn(ctx, c.FairMutex("fair turns")) },
	"RWMutex, writers": func(ctx context.Context, c *holdfast.Client) error {
		return oneTurn(ctx, c.RWMutex("written turns"))
	},
	"Semaphore of 3": func(ctx context.Context, c *holdfast.Client) error {
		if err := c.Semaphore("counted turns").Acquire(ctx, 1); err != nil {
			return err
		}
		time.Sleep(2 * time.Millisecond)
		return c.Semaphore("counted turns").Release(context.WithoutCancel(ctx), 1)
	},
}

func oneTurn(ctx context.Context, m holdfast.Locker) error {
	l, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Millisecond)
	return l.Release(context.WithoutCancel(ctx))
}

// A planned failover behind Sentinel, in the midst of turns of two processes. It may forget what a Semaphore was given back,
// for good: then fewer take turns at once.
func plannedFailover(t *testing.T) {
	s := redistest.Sentinel(t)
	for _, what := range slices.Sorted(maps.Keys(turnsOf)) {
		turn := turnsOf[what]
		over, stop := context.WithCancel(t.Context())
		var turns atomic.Int64
		var all sync.WaitGroup
		counted := clienttest.OpenClient(t, s.Client(t)).Semaphore("counted turns")
		_, _ = counted.TrySetPermits(t.Context(), 3)
		for range 2 {
			c := clienttest.OpenClient(t, s.Client(t))
			for range 3 {
				all.Go(func() {
					for over.Err() == nil {
						if turn(over, c) == nil {
							turns.Add(1)
						}
					}
				})
			}
		}
		time.Sleep(time.Second)
		before := turns.Load()
		time.Sleep(4 * time.Second)
		before = (turns.Load() - before) / 4
		failing := failOver(t, s)
		var seconds []int64
		for range 10 {
			had := turns.Load()
			time.Sleep(time.Second)
			seconds = append(seconds, turns.Load()-had)
		}
		<-failing
		stop()
		all.Wait()
		left, err := counted.Available(t.Context())
		redistest.Check(t, err)
		verdict(t, what+", turns in each second after a planned failover, two processes", "half of before from the third on, for the permits left",
			slices.Min(seconds[2:]) >= before/2*int64(min(left, 3))/3, "%d before; %v; %d permits left", before, seconds, left)
	}
}

// failOver has a failover begin, and returns once the first Sentinel names the new master. The failover ends later,
// when each of them does.
func failOver(t *testing.T, s *redistest.SentinelSet) (ended <-chan struct{}) {
	first := redis.NewSentinelClient(&redis.Options{Addr: s.SentinelAddrs()[0]})
	defer first.Close()
	master := func() string {
		addr, err := first.GetMasterAddrByName(t.Context(), redistest.MasterName).Result()
		redistest.Check(t, err)
		return strings.Join(addr, ":")
	}
	old, over := master(), make(chan struct{})
	go func() {
		defer close(over)
		s.Failover()
	}()
	redistest.Eventually(t, time.Minute, "a new master", func() error {
		if master() == old {
			return errors.New("none yet")
		}
		return nil
	})
	return over
}
