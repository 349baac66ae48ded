// Contexts end at random moments of an acquisition, and the tests measure how soon Lock returns and
// how soon the key is free.

package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const (
	// cancelBound is how soon a call returns after its context has ended.
	cancelBound = 50 * time.Millisecond
	// freeBound is how soon the lock is free if an abandoned call may have taken it.
	freeBound = 2 * time.Second
)

// canceller locks with contexts that end, and measures how long that takes.
type canceller struct {
	t       testing.TB
	client  *holdfast.Client
	pulse   *redistest.Pulse
	returns clienttest.Spread // how long after the cancel Lock returned
	frees   clienttest.Spread // how long after Lock returned the key was free
	holds   time.Duration     // the longest time for which a granted lock is held

	mu      sync.Mutex
	granted int
	keep    bool // keep granted leases; releaseKept releases them later
	kept    []*holdfast.Lease
}

// try locks name with a context that is cancelled after d. If the lock is granted before that, try
// releases it, or keeps it for releaseKept.
func (c *canceller) try(name string, d time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cancelled := make(chan time.Time, 1)
	time.AfterFunc(d, func() {
		at := time.Now()
		cancel()
		cancelled <- at
	})
	l, err := c.client.Mutex(name).Lock(ctx)
	returned := time.Now()
	if err == nil {
		c.mu.Lock()
		c.granted++
		keep := c.keep
		if keep {
			c.kept = append(c.kept, l)
		}
		c.mu.Unlock()
		if !keep {
			if c.holds > 0 {
				time.Sleep(clienttest.UpTo(c.holds))
			}
			clienttest.GiveBack(c.t, l)
		}
		return
	}
	at := <-cancelled
	took, slack := returned.Sub(at), c.pulse.Slack(at, returned)
	if took > cancelBound+slack {
		c.t.Errorf("Lock returned %v after its context had ended (starved for %v): %v", took, slack, err)
	}
	c.returns.AddBeyond(took, slack)
}

// releaseKept releases the leases that were granted while Redis could be reached.
func (c *canceller) releaseKept() {
	clienttest.GiveBack(c.t, c.kept...)
	c.kept = nil
}

// awaitFree fails the test unless the key is gone within freeBound of from.
func (c *canceller) awaitFree(rdb *redis.Client, name string, from time.Time) {
	for {
		n, err := rdb.Exists(context.Background(), name).Result()
		now := time.Now()
		if err == nil && n == 0 {
			c.frees.AddBeyond(now.Sub(from), c.pulse.Slack(from, now))
			return
		}
		if now.Sub(from) > freeBound+c.pulse.Slack(from, now) {
			c.t.Errorf("%s is still held %v after it was abandoned (%v)", name, now.Sub(from), err)
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (c *canceller) report(what string) {
	clienttest.Figure(c.t, "ctx cancelled, %s: Lock returns after %v; key free after %v; %d were granted first",
		what, &c.returns, &c.frees, c.granted)
}

func TestCancelUncontended(t *testing.T) {
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	c := &canceller{t: t, client: clienttest.OpenClient(t, s.Client(t)), pulse: redistest.FeelPulse(t)}
	clienttest.Each(redistest.Count(t, 1000), 20, func(i int) {
		name := fmt.Sprintf("cancel%d", i)
		c.try(name, clienttest.UpTo(500*time.Microsecond))
		c.awaitFree(s.Admin(), name, time.Now())
	})
	c.report("uncontended")
}

// Another process takes turns with callers that give up. Anything that these callers leave behind
// would keep the other process out.
func TestCancelContended(t *testing.T) {
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	c := &canceller{t: t, client: clienttest.OpenClient(t, s.Client(t)), pulse: redistest.FeelPulse(t), holds: 3 * time.Millisecond}
	other := clienttest.OpenClient(t, s.Client(t)).Mutex("contended")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var turns clienttest.Spread
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			asked := time.Now()
			l, err := other.Lock(clienttest.Generous(t))
			if err != nil {
				t.Errorf("Lock beside others that give up: %v", err)
				return
			}
			c.pulse.Within(t, "a turn beside others that give up", asked, freeBound)
			turns.Add(time.Since(asked))
			time.Sleep(clienttest.UpTo(3 * time.Millisecond))
			clienttest.GiveBack(t, l)
		}
	})
	clienttest.Each(redistest.Count(t, 1000), 8, func(int) { c.try("contended", clienttest.UpTo(15*time.Millisecond)) })
	close(stop)
	wg.Wait()
	c.awaitFree(s.Admin(), "contended", time.Now())
	c.report("contended")
	clienttest.Figure(t, "ctx cancelled, contended: another process's turns take %v", &turns)
}

func TestCancelBehindASlowNetwork(t *testing.T) {
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	proxy := redistest.Proxy(t, s.Addr())
	proxy.OnCommand(func(cmd redistest.Command) redistest.Fault {
		// A script with two keys acquires. In a pipeline delays add up, so the many clean-ups pass
		// without a delay.
		if !isScript(cmd) || cmd.Args[1] != "2" || rand.N(2) == 0 {
			return redistest.Pass
		}
		return redistest.Delay(clienttest.UpTo(150 * time.Millisecond))
	})
	c := &canceller{t: t, client: clienttest.OpenClient(t, proxy.Client(t)), pulse: redistest.FeelPulse(t)}
	clienttest.Each(redistest.Count(t, 1000), 10, func(i int) {
		name := fmt.Sprintf("slow%d", i)
		c.try(name, clienttest.UpTo(250*time.Millisecond))
		c.awaitFree(s.Admin(), name, time.Now())
	})
	c.report("requests delayed by up to 150 ms")
}

func TestCancelWhileTheServerIsFrozen(t *testing.T) {
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	c := &canceller{t: t, client: clienttest.OpenClient(t, s.Client(t)), pulse: redistest.FeelPulse(t), keep: true}
	const batch = 25
	for round := range redistest.Count(t, 1000) / batch {
		begun := make(chan struct{})
		var wg sync.WaitGroup
		for i := range batch {
			name := fmt.Sprintf("frozen%d.%d", round, i)
			wg.Go(func() {
				<-begun
				time.Sleep(clienttest.UpTo(3 * time.Millisecond)) // before, at and after the instant of the freeze
				c.try(name, time.Millisecond+clienttest.UpTo(60*time.Millisecond))
			})
		}
		close(begun)
		time.Sleep(clienttest.UpTo(2 * time.Millisecond))
		s.Freeze()
		wg.Wait()
		s.Thaw()
		thawed := time.Now()
		c.releaseKept()
		clienttest.Each(batch, batch, func(i int) { c.awaitFree(s.Admin(), fmt.Sprintf("frozen%d.%d", round, i), thawed) })
	}
	c.report("server frozen at that instant")
}

// The network may also hang while a connection is made, or during its handshake.
func TestCancelWhileConnecting(t *testing.T) {
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	for _, tc := range []struct {
		name string
		dial func(ctx context.Context) (net.Conn, error)
	}{
		{"dial", func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}},
		{"handshake", func(context.Context) (net.Conn, error) {
			client, server := net.Pipe()
			t.Cleanup(func() { server.Close() })
			return client, nil
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rdb := s.Client(t, func(o *redis.Options) {
				o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { return tc.dial(ctx) }
			})
			c := &canceller{t: t, client: clienttest.OpenClient(t, rdb), pulse: redistest.FeelPulse(t)}
			clienttest.Each(redistest.Count(t, 200), 10, func(i int) {
				c.try(fmt.Sprintf("unreachable%d", i), clienttest.UpTo(50*time.Millisecond))
			})
			clienttest.Figure(t, "ctx cancelled while connecting (%s hangs): Lock returns after %v", tc.name, &c.returns)
			closing := time.Now()
			_ = c.client.Close()
			c.pulse.Within(t, "Close", closing, 1500*time.Millisecond)
		})
	}
}
