// Contexts end at random moments of an acquisition, and the tests measure how soon Lock returns and
// how soon the key is free.

package holdfast_test

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
	"github.com/holdfast-go/holdfast/internal/redistest"
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
	pulse   *pulse
	returns spread        // how long after the cancel Lock returned
	frees   spread        // how long after Lock returned the key was free
	holds   time.Duration // the longest time for which a granted lock is held

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
				time.Sleep(upTo(c.holds))
			}
			giveBack(c.t, l)
		}
		return
	}
	at := <-cancelled
	took, slack := returned.Sub(at), c.pulse.slack(at, returned)
	if took > cancelBound+slack {
		c.t.Errorf("Lock returned %v after its context had ended (starved for %v): %v", took, slack, err)
	}
	c.returns.addBeyond(took, slack)
}

// releaseKept releases the leases that were granted while Redis could be reached.
func (c *canceller) releaseKept() {
	giveBack(c.t, c.kept...)
	c.kept = nil
}

// awaitFree fails the test unless the key is gone within freeBound of from.
func (c *canceller) awaitFree(rdb *redis.Client, name string, from time.Time) {
	for {
		n, err := rdb.Exists(context.Background(), name).Result()
		now := time.Now()
		if err == nil && n == 0 {
			c.frees.addBeyond(now.Sub(from), c.pulse.slack(from, now))
			return
		}
		if now.Sub(from) > freeBound+c.pulse.slack(from, now) {
			c.t.Errorf("%s is still held %v after it was abandoned (%v)", name, now.Sub(from), err)
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (c *canceller) report(what string) {
	figure(c.t, "ctx cancelled, %s: Lock returns after %v; key free after %v; %d were granted first",
		what, &c.returns, &c.frees, c.granted)
}

func TestCancelUncontended(t *testing.T) {
	s := redistest.Server(t)
	leaveNothing(t, s.Admin())
	c := &canceller{t: t, client: openClient(t, s.Client(t)), pulse: feelPulse(t)}
	each(redistest.Count(t, 1000), 20, func(i int) {
		name := fmt.Sprintf("cancel%d", i)
		c.try(name, upTo(500*time.Microsecond))
		c.awaitFree(s.Admin(), name, time.Now())
	})
	c.report("uncontended")
}

// Another process takes turns with callers that give up. Anything that these callers leave behind
// would keep the other process out.
func TestCancelContended(t *testing.T) {
	s := redistest.Server(t)
	leaveNothing(t, s.Admin())
	c := &canceller{t: t, client: openClient(t, s.Client(t)), pulse: feelPulse(t), holds: 3 * time.Millisecond}
	other := openClient(t, s.Client(t)).Mutex("contended")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var turns spread
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			asked := time.Now()
			l, err := other.Lock(generous(t))
			if err != nil {
				t.Errorf("Lock beside others that give up: %v", err)
				return
			}
			c.pulse.within(t, "a turn beside others that give up", asked, freeBound)
			turns.add(time.Since(asked))
			time.Sleep(upTo(3 * time.Millisecond))
			giveBack(t, l)
		}
	})
	each(redistest.Count(t, 1000), 8, func(int) { c.try("contended", upTo(15*time.Millisecond)) })
	close(stop)
	wg.Wait()
	c.awaitFree(s.Admin(), "contended", time.Now())
	c.report("contended")
	figure(t, "ctx cancelled, contended: another process's turns take %v", &turns)
}

func TestCancelBehindASlowNetwork(t *testing.T) {
	s := redistest.Server(t)
	leaveNothing(t, s.Admin())
	proxy := redistest.Proxy(t, s.Addr())
	proxy.OnCommand(func(cmd redistest.Command) redistest.Fault {
		// A script with two keys acquires. In a pipeline delays add up, so the many clean-ups pass
		// without a delay.
		if !isScript(cmd) || cmd.Args[1] != "2" || rand.N(2) == 0 {
			return redistest.Pass
		}
		return redistest.Delay(upTo(150 * time.Millisecond))
	})
	c := &canceller{t: t, client: openClient(t, proxy.Client(t)), pulse: feelPulse(t)}
	each(redistest.Count(t, 1000), 10, func(i int) {
		name := fmt.Sprintf("slow%d", i)
		c.try(name, upTo(250*time.Millisecond))
		c.awaitFree(s.Admin(), name, time.Now())
	})
	c.report("requests delayed by up to 150 ms")
}

func TestCancelWhileTheServerIsFrozen(t *testing.T) {
	s := redistest.Server(t)
	leaveNothing(t, s.Admin())
	c := &canceller{t: t, client: openClient(t, s.Client(t)), pulse: feelPulse(t), keep: true}
	const batch = 25
	for round := range redistest.Count(t, 1000) / batch {
		begun := make(chan struct{})
		var wg sync.WaitGroup
		for i := range batch {
			name := fmt.Sprintf("frozen%d.%d", round, i)
			wg.Go(func() {
				<-begun
				time.Sleep(upTo(3 * time.Millisecond)) // before, at and after the instant of the freeze
				c.try(name, time.Millisecond+upTo(60*time.Millisecond))
			})
		}
		close(begun)
		time.Sleep(upTo(2 * time.Millisecond))
		s.Freeze()
		wg.Wait()
		s.Thaw()
		thawed := time.Now()
		c.releaseKept()
		each(batch, batch, func(i int) { c.awaitFree(s.Admin(), fmt.Sprintf("frozen%d.%d", round, i), thawed) })
	}
	c.report("server frozen at that instant")
}

// The network may also hang while a connection is made, or during its handshake.
func TestCancelWhileConnecting(t *testing.T) {
	s := redistest.Server(t)
	leaveNothing(t, s.Admin())
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
			c := &canceller{t: t, client: openClient(t, rdb), pulse: feelPulse(t)}
			each(redistest.Count(t, 200), 10, func(i int) {
				c.try(fmt.Sprintf("unreachable%d", i), upTo(50*time.Millisecond))
			})
			figure(t, "ctx cancelled while connecting (%s hangs): Lock returns after %v", tc.name, &c.returns)
			closing := time.Now()
			_ = c.client.Close()
			c.pulse.within(t, "Close", closing, 1500*time.Millisecond)
		})
	}
}
