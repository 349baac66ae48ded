// Messages are lost, and waiters are granted the lock all the same, only later.

package faults

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// pollBound is the longest time for which a waiter does not ask, plus the longest time that asking
// takes.
const pollBound = 1250*time.Millisecond + 50*time.Millisecond

// crowd is a holder of many locks, with one waiter for each lock in another process.
type crowd struct {
	t       *testing.T
	pulse   *redistest.Pulse
	holder  *holdfast.Client
	waiters *holdfast.Client
	prefix  string
	n       int
}

// round locks every name, lets a waiter wait for each name, and releases all of them after disturb.
// It adds to took how long after the release each waiter had the lock. No waiter may take longer
// than the poll bound, whatever disturb has done.
func (c crowd) round(took *clienttest.Spread, waiting func() error, disturb func()) {
	c.t.Helper()
	leases := clienttest.GrabMany(c.t, c.holder, c.prefix, c.n)
	var released sync.Map
	var wg sync.WaitGroup
	for name := range leases {
		wg.Go(func() {
			l, err := c.waiters.Mutex(name).Lock(clienttest.Generous(c.t))
			now := time.Now()
			if err != nil {
				c.t.Errorf("Lock: %v", err)
				return
			}
			from, ok := released.Load(name)
			if !ok {
				c.t.Errorf("%s was granted before it was released", name)
				return
			}
			d := now.Sub(from.(time.Time))
			if slack := c.pulse.Slack(from.(time.Time), now); d > pollBound+slack {
				c.t.Errorf("%s was granted %v after its release (starved for %v)", name, d, slack)
			}
			took.Add(d)
			clienttest.GiveBack(c.t, l)
		})
	}
	redistest.Eventually(c.t, 10*time.Second, "all wait", waiting)
	if disturb != nil {
		disturb()
	}
	for name, l := range leases {
		released.Store(name, time.Now())
		clienttest.GiveBack(c.t, l)
	}
	wg.Wait()
}

// subscribed returns a check that at least n channels have a subscriber.
func subscribed(t testing.TB, s *redistest.Proc, n int) func() error {
	return func() error {
		channels, err := s.Admin().PubSubChannels(t.Context(), "*").Result()
		if err == nil && len(channels) < n {
			err = fmt.Errorf("%d of %d channels", len(channels), n)
		}
		return err
	}
}

func TestWakeUpByMessage(t *testing.T) {
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	c := crowd{t, redistest.FeelPulse(t), clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, s.Client(t)), "woken", 1}
	var took clienttest.Spread
	for range redistest.Count(t, 1000) {
		c.round(&took, func() error {
			time.Sleep(2 * time.Millisecond) // the channel lingers: it does not prove a waiter
			return subscribed(t, s, 1)()
		}, nil)
	}
	clienttest.Figure(t, "woken by message after the release: %v", &took)
	if half := took.At(50); half > 5*time.Millisecond {
		t.Errorf("half of the waiters took %v or longer after the release", half)
	}
}

func TestSubscriptionsKilled(t *testing.T) {
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	c := crowd{t, redistest.FeelPulse(t), clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, s.Client(t)), "killed", 20}
	var took clienttest.Spread
	for range redistest.Count(t, 50) {
		c.round(&took, subscribed(t, s, c.n), func() {
			if err := s.Admin().ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
				t.Error(err)
			}
		})
	}
	clienttest.Figure(t, "subscription connection killed just before the release: granted after %v", &took)
}

// The connection that carries the messages falls silent and stays open.
func TestSubscriptionBlackHoled(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	proxy := redistest.Proxy(t, s.Addr())
	c := crowd{t, redistest.FeelPulse(t), clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, proxy.Client(t)), "silent", 20}

	// When another channel is subscribed on the same connection, nothing comes on that connection
	// any more. A new connection passes.
	var hole atomic.Bool
	proxy.OnCommand(func(cmd redistest.Command) redistest.Fault {
		if cmd.Name == "SUBSCRIBE" && hole.CompareAndSwap(true, false) {
			return redistest.Silence
		}
		return redistest.Pass
	})
	var took clienttest.Spread
	for i := range redistest.Count(t, 20) {
		var bait *holdfast.Lease
		c.round(&took, subscribed(t, s, c.n), func() {
			name := fmt.Sprintf("bait%d", i)
			bait = clienttest.Grab(t, c.holder.Mutex(name))
			hole.Store(true)
			go func() {
				if l, err := c.waiters.Mutex(name).Lock(clienttest.Generous(t)); err == nil {
					clienttest.GiveBack(t, l)
				}
			}()
			redistest.Eventually(t, 10*time.Second, "the connection is silent", func() error {
				if hole.Load() {
					return fmt.Errorf("nothing was subscribed")
				}
				return nil
			})
		})
		clienttest.GiveBack(t, bait)
	}
	redistest.Eventually(t, 10*time.Second, "the baits are taken and released", func() error {
		n, err := s.Admin().DBSize(t.Context()).Result()
		tokens, _ := s.Admin().Keys(t.Context(), "redisson_lock_token:*").Result()
		if err == nil && int(n) > len(tokens) {
			err = fmt.Errorf("%d keys that are no tokens", int(n)-len(tokens))
		}
		return err
	})
	clienttest.Figure(t, "subscription connection silent: granted after %v", &took)
}

func TestEveryMessageLost(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	proxy := redistest.Proxy(t, s.Addr())
	c := crowd{t, redistest.FeelPulse(t), clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, proxy.Client(t)), "deaf", 20}
	proxy.OnCommand(func(cmd redistest.Command) redistest.Fault {
		if cmd.Name == "SUBSCRIBE" {
			return redistest.Silence
		}
		return redistest.Pass
	})
	var took clienttest.Spread
	for range redistest.Count(t, 50) {
		c.round(&took, func() error { return nil }, func() {
			time.Sleep(clienttest.UpTo(time.Second))
		})
	}
	clienttest.Figure(t, "every message lost: granted after %v", &took)
}

// Nobody tells the waiters that an administrator has deleted a key, and still they are granted
// within the poll bound.
func TestLockDeletedUnderWaiters(t *testing.T) {
	t.Parallel()
	redistest.Undisturbed(t, 300*time.Millisecond, func(t testing.TB) {
		s := redistest.Server(t)
		clienttest.LeaveNothing(t, s.Admin())
		p := redistest.FeelPulse(t)
		holder, waiters := clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, s.Client(t))
		leases := clienttest.GrabMany(t, holder, "deleted", 20, holdfast.Renewed(1500*time.Millisecond))
		var wg sync.WaitGroup
		var deleted atomic.Pointer[time.Time]
		for name := range leases {
			wg.Go(func() {
				l, err := waiters.Mutex(name).Lock(clienttest.Generous(t))
				if err != nil {
					t.Errorf("Lock: %v", err)
					return
				}
				if at := deleted.Load(); at != nil {
					p.Within(t, "the grant after the key was deleted", *at, pollBound)
				} else {
					t.Errorf("%s was granted before its key was deleted", name)
				}
				clienttest.GiveBack(t, l)
			})
		}
		redistest.Eventually(t, 10*time.Second, "all wait", subscribed(t, s, len(leases)))
		now := time.Now()
		deleted.Store(&now)
		if err := s.Admin().Del(t.Context(), names(leases)...).Err(); err != nil {
			t.Fatal(err)
		}
		for _, l := range leases {
			clienttest.LostBy(t, p, l, now.Add(500*time.Millisecond+100*time.Millisecond))
		}
		wg.Wait()
	})
}
