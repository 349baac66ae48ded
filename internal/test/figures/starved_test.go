// Processes that get little of their processor, and servers that answer late: a lease lasts all the same.

package figures

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
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

// Each reply takes long, and the program's own client would wait for it.
func slowServers(t *testing.T) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, took := range []time.Duration{1200 * time.Millisecond, 3 * time.Second, 8 * time.Second} {
		proxy := redistest.Proxy(t, redistest.Server(t).Addr())
		c := clienttest.OpenClient(t, proxy.Client(t, func(o *redis.Options) { o.ReadTimeout = 10 * time.Second }))
		proxy.OnCommand(func(redistest.Command) redistest.Fault { return redistest.Delay(took) })
		all.Go(func() {
			said, met := slowLock(t.Context(), c)
			proxy.OnCommand(nil)
			verdict(t, fmt.Sprintf("a lock and its lease of 30 s, replies after %v", took), "kept", met, "%s", said)
		})
	}
}

// slowLock says what becomes of a lock and of its lease, and whether they were granted and kept.
func slowLock(ctx context.Context, c *holdfast.Client) (said string, met bool) {
	asking, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	l, err := c.Mutex("kept").Lock(asking)
	if err != nil {
		return "no lock in a minute", false
	}
	granted := time.Now()
	select {
	case <-l.Done():
		return fmt.Sprintf("lost after %.1fs", time.Since(granted).Seconds()), false
	case <-time.After(65 * time.Second):
		return "kept", true
	}
}
