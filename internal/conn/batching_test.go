// A lone caller sends one command over the wire, and many callers share pipelines.

package conn_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestLoneCallerSendsOneCommand(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.load(t, count)
		sent := record(b.proxy)
		for range 6 {
			mustRun(t, b.Manager, newCount("k"))
			time.Sleep(10 * time.Minute) // go-redis's ConnMaxIdleTime is 30
		}
		if got, want := sent.String(), "HELLO TIME"+strings.Repeat(" EVALSHA", 6); got != want {
			t.Errorf("6 calls sent %q, want %q", got, want)
		}
		if b.proxy.Conns() != 1 {
			t.Errorf("%d connections for one caller", b.proxy.Conns())
		}
	})
}

// Callers that call at the same time share round trips. The connection takes a millisecond, so
// that callers meet. One write is one round trip: go-redis writes a pipeline at once.
func TestConcurrentCallersShareRoundTrips(t *testing.T) {
	const callers, each, latency = 256, 10, time.Millisecond
	inBubble(t, func(t *testing.T, b *bubble) {
		b.latency.Store(int64(latency))
		b.warm(t)
		b.writes.Store(0)
		started := time.Now()
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for range each {
					mustRun(t, b.Manager, newCount(fmt.Sprint("k", i)))
				}
			})
		}
		wg.Wait()
		if got, limit := int(b.writes.Load()), callers*each/20; got > limit {
			t.Errorf("%d commands in %d round trips, want at most %d", callers*each, got, limit)
		}
		if took, limit := time.Since(started), callers*each*latency/80; took > limit {
			t.Errorf("%d commands took %v at a latency of %v, want at most %v", callers*each, took, latency, limit)
		}
		for i := range callers {
			if got := b.executions(t, fmt.Sprint("k", i)); got != each {
				t.Errorf("caller %d: %d executions, want %d", i, got, each)
			}
		}
	})
}

// Queued requests go out in the order in which they came. A pipeline is small enough to leave room
// for other clients of the server, and requests for the other wires.
func TestQueueGoesOutInOrder(t *testing.T) {
	for callers, most := range map[int]int64{
		300: (300+4)/5 + 1, // a fifth of what has queued or is on the four wires
		900: 128,
	} {
		t.Run(fmt.Sprint(callers), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.warm(t)
				release := b.occupy(t)
				calls := queued(b.Manager, callers, numbered)
				var mu sync.Mutex
				came := make(map[int64][]string) // by connection
				b.proxy.OnCommand(func(c redistest.Command) redistest.Fault {
					mu.Lock()
					defer mu.Unlock()
					came[c.Conn] = append(came[c.Conn], c.Args[2])
					return redistest.Pass
				})
				b.largest.Store(0)
				release()
				served(t, time.Second, calls...)
				for conn, keys := range came {
					if !slices.IsSorted(keys) {
						t.Errorf("connection %d: %v", conn, keys)
					}
				}
				if got := b.largest.Load(); got != most {
					t.Errorf("the largest pipeline had %d commands, want %d", got, most)
				}
			})
		})
	}
}

func TestScriptsAreLoadedWhereMissing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		flush := func() {
			t.Helper()
			if err := b.server.Client().ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		b.warm(t)
		flush()
		c := newCount("alone")
		mustRun(t, b.Manager, c)
		if _, unheard := c.Outstanding(); unheard || c.Int(2) != 1 || c.Attempts != 2 {
			t.Errorf("alone: reply %v, %d attempts, outstanding %v, want one execution in 2 attempts", c.Reply, c.Attempts, unheard)
		}

		release := b.occupy(t)
		calls := queued(b.Manager, 20, numbered)
		synctest.Wait()
		flush()
		release()
		for i, c := range calls {
			if err := c.wait(t, time.Second); err != nil || c.Int(2) != 1 {
				t.Errorf("queued %d: %v, reply %v", i, err, c.Reply)
			}
		}

		flush()
		batch := counts("b1", "b2", "b3", "b4", "b5")
		for i, err := range runBatch(t.Context(), t, b.Manager, nodeOf(t, b.Manager, "b"), batch) {
			if err != nil || batch[i].Int(2) != 1 {
				t.Errorf("batch %d: %v, reply %v", i, err, batch[i].Reply)
			}
		}
	})
}
