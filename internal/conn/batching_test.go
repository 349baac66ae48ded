// A lone caller sends one command over the wire, and many callers share pipelines.

package conn_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestLoneCallerSendsOneCommand(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		mustLoad(t, b.server.Client(), count)
		first := record(b.proxy)
		mustRun(t, b.Manager, newCount("k"))
		if got, want := first.String(), "HELLO TIME EVALSHA"; got != want {
			t.Errorf("the first call sent %q, want %q", got, want)
		}
		next := record(b.proxy)
		for range 5 {
			mustRun(t, b.Manager, newCount("k"))
			time.Sleep(10 * time.Minute) // go-redis's ConnMaxIdleTime is 30
		}
		if got, want := next.String(), strings.TrimSpace(strings.Repeat("EVALSHA ", 5)); got != want {
			t.Errorf("5 calls sent %q", got)
		}
		if b.proxy.Conns() != 1 {
			t.Errorf("%d connections for one caller", b.proxy.Conns())
		}
	})
}

func TestLoneCallerSendsOneCommandToARealServer(t *testing.T) {
	server := redistest.Server(t)
	mustLoad(t, server.Admin(), count)
	proxy := redistest.Proxy(t, server.Addr())
	m := newManager(t, proxy.Client(t))
	sent := record(proxy)
	for range 3 {
		mustRun(t, m, newCount("k"))
	}
	if got, want := sent.String(), "HELLO TIME EVALSHA EVALSHA EVALSHA"; got != want {
		t.Errorf("3 calls sent %q, want %q", got, want)
	}
}

// Callers that call at the same time share round trips. The proxy answers after a millisecond, so
// that callers meet. One write is one round trip: go-redis writes a pipeline at once.
func TestConcurrentCallersShareRoundTrips(t *testing.T) {
	const callers, each, latency = 256, 10, time.Millisecond
	redistest.Bubble(t, func(t *testing.T) {
		server := redistest.Mini(t)
		var writes atomic.Int64
		m := newManager(t, server.Client(func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := server.Dial(ctx, network, addr)
				return &slowConn{Conn: c, latency: latency, writes: &writes}, err
			}
		}))
		mustRun(t, m, newCount("warm"))
		writes.Store(0)

		started := time.Now()
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for range each {
					mustRun(t, m, newCount(fmt.Sprint("k", i)))
				}
			})
		}
		wg.Wait()
		if got, limit := int(writes.Load()), callers*each/20; got > limit {
			t.Errorf("%d commands in %d round trips, want at most %d", callers*each, got, limit)
		}
		if took, limit := time.Since(started), callers*each*latency/80; took > limit {
			t.Errorf("%d commands took %v at a latency of %v, want at most %v", callers*each, took, latency, limit)
		}
		for i := range callers {
			if got, _ := server.Get(fmt.Sprint("k", i)); got != fmt.Sprint(each) {
				t.Errorf("caller %d: %s executions, want %d", i, got, each)
			}
		}
	})
}

// slowConn is a connection that takes a while for every write, and counts the writes.
type slowConn struct {
	net.Conn
	latency time.Duration
	writes  *atomic.Int64
}

func (c *slowConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	time.Sleep(c.latency)
	return c.Conn.Write(p)
}

func TestConcurrentCallersShareRoundTripsToARealServer(t *testing.T) {
	const callers, each = 256, 20
	server := redistest.Server(t)
	mustLoad(t, server.Admin(), count)
	var writes atomic.Int64
	m := newManager(t, server.Client(t, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &slowConn{Conn: c, latency: 2 * time.Millisecond, writes: &writes}, err
		}
	}))
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range each {
				mustRun(t, m, newCount(fmt.Sprint("k", i)))
			}
		})
	}
	wg.Wait()
	if got, limit := int(writes.Load()), callers*each/20; got > limit {
		t.Errorf("%d commands in %d writes, want at most %d", callers*each, got, limit)
	}
	for i := range callers {
		if got, err := server.Admin().Get(t.Context(), fmt.Sprint("k", i)).Int(); got != each || err != nil {
			t.Errorf("caller %d: %d executions (%v), want %d", i, got, err, each)
		}
	}
}

// Queued requests go out in the order in which they came. A pipeline is small enough to leave room
// for other clients of the server, and requests for the other wires.
func TestQueueGoesOutInOrder(t *testing.T) {
	for callers, most := range map[int]int64{
		300: (300+4)/5 + 1, // a fifth of what has queued or is on the four wires
		900: 128,
	} {
		t.Run(strconv.Itoa(callers), func(t *testing.T) { queueGoesOutInOrder(t, callers, most) })
	}
}

func queueGoesOutInOrder(t *testing.T, callers int, most int64) {
	largest := new(atomic.Int64)
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		release := b.occupy(t)
		calls := make([]*started, callers)
		for i := range calls {
			calls[i] = start(b.Manager, newCount(fmt.Sprintf("k%03d", i)))
			synctest.Wait()
		}
		var mu sync.Mutex
		came := make(map[int64][]string) // by connection
		b.proxy.OnCommand(func(c redistest.Command) redistest.Fault {
			mu.Lock()
			defer mu.Unlock()
			came[c.Conn] = append(came[c.Conn], c.Args[2])
			return redistest.Pass
		})
		largest.Store(0)
		release()
		for _, c := range calls {
			if err := c.wait(t, time.Second); err != nil {
				t.Fatal(err)
			}
		}
		for conn, keys := range came {
			if !slices.IsSorted(keys) {
				t.Errorf("connection %d: %v", conn, keys)
			}
		}
		if got := largest.Load(); got != most {
			t.Errorf("the largest pipeline had %d commands, want %d", got, most)
		}
	}, func(o *redis.Options) {
		dial := o.Dialer
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			return &pipelineConn{Conn: c, largest: largest}, err
		}
	})
}

// pipelineConn records the largest number of commands that one write had.
type pipelineConn struct {
	net.Conn
	largest *atomic.Int64
}

func (c *pipelineConn) Write(p []byte) (int, error) {
	n := int64(bytes.Count(p, []byte("evalsha")))
	if n > c.largest.Load() {
		c.largest.Store(n)
	}
	return c.Conn.Write(p)
}

// A failed request in a pipeline does not affect the other requests of the pipeline.
func TestOneFailureInAPipelineIsItsOwn(t *testing.T) {
	const callers = 40
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		if _, err := b.server.Lpush("wrong", "x"); err != nil {
			t.Fatal(err)
		}
		release := b.occupy(t)
		calls := make([]*started, callers)
		for i := range calls {
			key := fmt.Sprint("k", i)
			if i%4 == 1 {
				key = "wrong"
			}
			calls[i] = start(b.Manager, newCount(key))
		}
		synctest.Wait()
		release()
		for i, c := range calls {
			err := c.wait(t, time.Second)
			if i%4 == 1 {
				mustMatch(t, err, errs.WrongType)
			} else if err != nil || c.Int(2) != 1 || c.Attempts != 1 {
				t.Errorf("caller %d, a neighbour of failures: %v, reply %v, %d attempts", i, err, c.Reply, c.Attempts)
			}
		}
	})
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
		if c.Int(2) != 1 || c.Attempts != 2 {
			t.Errorf("alone: reply %v, %d attempts, want one execution in 2 attempts", c.Reply, c.Attempts)
		}
		if _, unheard := c.Outstanding(); unheard {
			t.Error("alone: an answered NOSCRIPT is outstanding")
		}

		release := b.occupy(t)
		calls := make([]*started, 20)
		for i := range calls {
			calls[i] = start(b.Manager, newCount(fmt.Sprint("queued", i)))
		}
		synctest.Wait()
		flush()
		release()
		for i, c := range calls {
			if err := c.wait(t, time.Second); err != nil || c.Int(2) != 1 {
				t.Errorf("queued %d: %v, reply %v", i, err, c.Reply)
			}
		}

		flush()
		node, err := b.Node(t.Context(), "batch")
		if err != nil {
			t.Fatal(err)
		}
		batch := make([]*conn.Call, 20)
		for i := range batch {
			batch[i] = newCount(fmt.Sprint("batch", i))
		}
		for i, err := range runBatch(t.Context(), t, b.Manager, node, batch) {
			if err != nil || batch[i].Int(2) != 1 {
				t.Errorf("batch %d: %v, reply %v", i, err, batch[i].Reply)
			}
		}
	})
}

// mustLoad makes the server know the script by its hash.
func mustLoad(t testing.TB, rdb *redis.Client, s *conn.Script) {
	t.Helper()
	m, err := conn.New(rdb, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	mustRun(t, m, &conn.Call{Script: s, Keys: []string{"loading"}})
}
