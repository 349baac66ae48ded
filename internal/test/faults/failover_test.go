// Masters die, stand still or are replaced, and slots move, while locks are held and contended.

package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// load is a set of callers. They lock and release a few names, over and over, until the load is
// stopped.
type load struct {
	t       testing.TB
	mutual  bool // overlaps are failures
	options []holdfast.LeaseOption
	mu      sync.Mutex
	grants  int
	lost    int       // leases that a failover lost, as it may, or that no Release ended in time
	last    time.Time // of the last grant
	longest time.Duration
	inside  []atomic.Int32
	stop    chan struct{}
	wg      sync.WaitGroup
}

// run starts callers on each name through the clients in turn.
func (d *load) run(names []string, callers int, clients ...*holdfast.Client) {
	d.stop = make(chan struct{})
	d.inside = make([]atomic.Int32, len(names))
	for i, name := range names {
		for k := range callers {
			m := clients[k%len(clients)].Mutex(name, d.options...)
			d.wg.Go(func() {
				for d.going() {
					d.turn(m, &d.inside[i])
				}
			})
		}
	}
}

func (d *load) going() bool {
	select {
	case <-d.stop:
		return false
	default:
		return true
	}
}

func (d *load) turn(m holdfast.Locker, inside *atomic.Int32) {
	asked := time.Now()
	l, err := m.Lock(clienttest.Generous(d.t))
	if err != nil {
		d.t.Errorf("Lock: %v", err)
		return
	}
	n := inside.Add(1)
	now := time.Now()
	d.mu.Lock()
	d.grants++
	d.last, d.longest = now, max(d.longest, now.Sub(asked))
	d.mu.Unlock()
	if d.mutual && n != 1 && l.Err() == nil {
		redistest.Inexcusable(d.t, "overlap: %d are inside", n)
	}
	time.Sleep(time.Millisecond)
	inside.Add(-1)
	switch err := l.Release(clienttest.Generous(d.t)); {
	case !d.mutual && (errors.Is(err, holdfast.ErrLost) || errors.Is(err, context.DeadlineExceeded)):
		d.mu.Lock()
		d.lost++
		d.mu.Unlock()
	case err != nil:
		d.t.Errorf("Release: %v", err)
	}
}

func (d *load) end() {
	close(d.stop)
	d.wg.Wait()
}

// awaitGrant waits for a grant after the given instant, and returns when that grant was.
func (d *load) awaitGrant(after time.Time) time.Time {
	var at time.Time
	redistest.Eventually(d.t, 30*time.Second, "a grant", func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if at = d.last; !at.After(after) {
			return errors.New("none yet")
		}
		return nil
	})
	return at
}

// check fails the test if any caller waited for much longer than the outage lasted.
func (d *load) check(p *redistest.Pulse, failed, promoted time.Time) {
	d.t.Helper()
	bound := promoted.Sub(failed) + usableBound + staleTurn
	if slack := p.Slack(failed, time.Now()); d.longest > bound+slack {
		d.t.Errorf("somebody waited for %v, want at most %v (starved for %v)", d.longest, bound, slack)
	}
}

// usableBound is how soon after a promotion locks are granted again.
const usableBound = 3 * time.Second

// staleTurn is how long the queue may keep a turn for a waiter that already had this turn on the
// former master.
const staleTurn = 2500 * time.Millisecond

// failoverLease is the length of a lease that outlives a failover.
const failoverLease = 15 * time.Second

// contendedLease is the length of the leases on the contended lock. It is short: if a release has
// not reached the promoted master, the hold stays there for the rest of its lease.
const contendedLease = 2 * time.Second

// replicated waits until n replicas have what the master has.
func replicated(t testing.TB, master *redistest.Proc, n int) {
	t.Helper()
	got, err := master.Admin().Do(t.Context(), "WAIT", n, 10_000).Int()
	if err != nil || got < n {
		t.Fatalf("WAIT %d: %d, %v", n, got, err)
	}
}

// vouched asks Redis about each lease. It fails the test unless each lease has survived.
func vouched(t testing.TB, leases map[string]*holdfast.Lease, length time.Duration) {
	t.Helper()
	for name, l := range leases {
		if err := l.Extend(clienttest.Generous(t), length); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// failovers makes one kind of failover again and again, one after the other.
func failovers(t *testing.T, one func(t *testing.T)) {
	t.Parallel()
	for round := range redistest.Count(t, 10) {
		t.Run(fmt.Sprint(round), one)
	}
}

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		fail func(*redistest.SentinelSet) (frozen *redistest.Proc)
	}{
		{"planned", func(s *redistest.SentinelSet) *redistest.Proc { s.Failover(); return nil }}, // it serves on
		{"killed", func(s *redistest.SentinelSet) *redistest.Proc { s.KillMaster(); return nil }},
		{"frozen", (*redistest.SentinelSet).FreezeMaster}, // the old master takes itself for the master when it thaws
	} {
		t.Run(tc.name, func(t *testing.T) {
			failovers(t, func(t *testing.T) {
				s := redistest.Sentinel(t)
				clienttest.LeaveNothingOn(t, s.Nodes())
				f := failoverRun{what: "Sentinel, master " + tc.name, a: clienttest.OpenClient(t, s.Client(t)), b: clienttest.OpenClient(t, s.Client(t))}
				f.begin(t, "failover", func() { replicated(t, s.Master(), 2) })
				frozen := tc.fail(s)
				s.Master()
				f.promoted(t)
				if frozen != nil {
					frozen.Thaw()
				}
				time.Sleep(failoverLease/3 + time.Second) // long enough for a renewal by itself
				s.Settle()                                // a running former master loses its data
				f.end(t)
			})
		})
	}
}

func TestClusterFailover(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		fail func(*redistest.ClusterSet)
	}{
		{"planned", func(s *redistest.ClusterSet) { s.Failover("contended") }},
		{"killed", func(s *redistest.ClusterSet) { s.KillMasterOf("contended") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			failovers(t, func(t *testing.T) {
				s := redistest.Cluster(t, 3, 1)
				clienttest.LeaveNothingOn(t, s.Nodes())
				f := failoverRun{what: "Cluster, master " + tc.name, a: clienttest.OpenClient(t, s.Client(t)), b: clienttest.OpenClient(t, s.Client(t))}
				f.begin(t, "failover{contended}", func() { replicated(t, s.MasterOf("contended"), 1) })
				tc.fail(s)
				s.MasterOf("contended")
				f.promoted(t)
				time.Sleep(failoverLease/3 + time.Second)
				f.end(t)
			})
		})
	}
}

// failoverRun is one failover, with 20 renewed leases and a contended lock.
type failoverRun struct {
	what string
	a, b *holdfast.Client

	leases    map[string]*holdfast.Lease
	load      load
	pulse     *redistest.Pulse
	failed    time.Time
	promotion time.Time
	granted   time.Time
}

// begin takes the leases, waits until the replicas have them, and starts the load. The caller makes
// the failover after begin.
func (f *failoverRun) begin(t *testing.T, prefix string, replicated func()) {
	f.pulse = redistest.FeelPulse(t)
	f.leases = clienttest.GrabMany(t, f.a, prefix, 20, holdfast.Renewed(failoverLease))
	replicated()
	f.load = load{t: t, options: []holdfast.LeaseOption{holdfast.Renewed(contendedLease)}}
	f.load.run([]string{"contended"}, 4, f.a, f.b)
	f.load.awaitGrant(time.Now())
	f.failed = time.Now()
}

// The caller calls promoted when there is a new master.
func (f *failoverRun) promoted(t *testing.T) {
	f.promotion = time.Now()
	f.granted = f.load.awaitGrant(f.promotion)
	f.pulse.Within(t, "a grant after the promotion", f.promotion, usableBound)
	vouched(t, f.leases, failoverLease)
}

// end ends the load and fails the test unless the leases were kept.
func (f *failoverRun) end(t *testing.T) {
	f.load.end()
	f.load.check(f.pulse, f.failed, f.promotion)
	vouched(t, f.leases, failoverLease)
	clienttest.GiveBackAll(t, f.leases)
	round := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	clienttest.Figure(t, "%s: promotion seen after %v, a grant %v after that; 20 of 20 holds of %v kept; longest wait %v; %d grants, %d lost with the master",
		f.what, round(f.promotion.Sub(f.failed)), round(f.granted.Sub(f.promotion)), failoverLease, round(f.load.longest), f.load.grants, f.load.lost)
}

// movingLease is the length of a lease that is renewed several times while slots move.
const movingLease = 2 * time.Second

// Slots move to and fro under load, and locks work on without an overlap. Some slots move slowly,
// with the lock on one side and its token on the other.
func TestSlotsMove(t *testing.T) {
	t.Parallel()
	redistest.Undisturbed(t, movingLease/4, func(t testing.TB) {
		s := redistest.Cluster(t, 3, 0)
		clienttest.LeaveNothingOn(t, s.Nodes())
		p := redistest.FeelPulse(t)
		a, b := clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, s.Client(t))
		var on []string
		for i := range 4 {
			on = append(on, fmt.Sprintf("moving%d{slot}", i))
		}
		leases := clienttest.GrabMany(t, a, "held{slot}", 20, holdfast.Renewed(movingLease))
		d := &load{t: t, mutual: true}
		d.run(on, 4, a, b)
		moves := redistest.Count(t, 1000)
		began := time.Now()
		for i := range moves {
			move := s.OpenSlot("{slot}")
			if i%4 == 0 {
				keys := move.Keys()
				for _, key := range keys[:len(keys)/2] {
					move.MoveKeys(key)
				}
				time.Sleep(clienttest.UpTo(20 * time.Millisecond))
			}
			move.Finish()
			d.awaitGrant(time.Now())
		}
		took := time.Since(began)
		d.end()
		for name, l := range leases {
			if err := l.Err(); err != nil {
				t.Errorf("%s: %v (this process was starved for %v in all)", name, err, p.Slack(began, time.Now()))
			}
		}
		vouched(t, leases, movingLease)
		clienttest.GiveBackAll(t, leases)
		clienttest.Figure(t, "%d slot moves in %v under %d grants: 0 errors, 0 overlaps, 20 held leases of %v kept, longest wait %v",
			moves, took.Round(time.Millisecond), d.grants, movingLease, d.longest.Round(time.Millisecond))
	})
}

// A slot may stay open for long. A hold in it is renewed and released there. A new lock has to
// wait, for as long as its context allows.
func TestSlotStaysOpen(t *testing.T) {
	t.Parallel()
	redistest.Undisturbed(t, movingLease/4, func(t testing.TB) {
		s := redistest.Cluster(t, 3, 0)
		clienttest.LeaveNothingOn(t, s.Nodes())
		c := clienttest.OpenClient(t, s.Client(t))
		leases := clienttest.GrabMany(t, c, "open{slot}", 20, holdfast.Renewed(movingLease))
		released := clienttest.GrabMany(t, c, "released{slot}", 20, holdfast.Renewed(movingLease))
		split := clienttest.Grab(t, c.Mutex("split{slot}"))
		clienttest.GiveBack(t, split)

		move := s.OpenSlot("{slot}")
		keys := move.Keys()
		move.MoveKeys(keys[:len(keys)/2]...)
		var took clienttest.Spread
		for name, l := range released {
			began := time.Now()
			if err := l.Release(clienttest.Generous(t)); err != nil {
				t.Errorf("Release of %s in an open slot: %v", name, err)
			}
			took.Add(time.Since(began))
		}
		waiting := make(chan error, 1)
		go func() {
			l, err := c.Mutex("new{slot}").Lock(clienttest.Generous(t))
			if err == nil {
				err = l.Release(clienttest.Generous(t))
			}
			waiting <- err
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		for name := range leases {
			if _, err := c.Mutex(name).Lock(ctx); err == nil {
				t.Errorf("%s was granted twice", name)
			}
		}
		time.Sleep(movingLease + movingLease/4)
		vouched(t, leases, movingLease)
		move.Finish()
		if err := <-waiting; err != nil {
			t.Errorf("a Lock that waited for the slot to close: %v", err)
		}
		vouched(t, leases, movingLease)
		clienttest.GiveBackAll(t, leases)
		clienttest.Figure(t, "slot open for longer than a lease: 20 holds of %v kept; releases in it took %v", movingLease, &took)
	})
}

// Waiters listen on the master of the slot. After the slot has moved they listen on its new master,
// and until then they poll.
func TestWaitersOfASlotThatMoved(t *testing.T) {
	t.Parallel()
	s := redistest.Cluster(t, 3, 0)
	clienttest.LeaveNothingOn(t, s.Nodes())
	c := crowd{t, redistest.FeelPulse(t), clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, s.Client(t)), "moved{slot}", 20}
	subscribed := func() error {
		channels, err := s.MasterOf("{slot}").Admin().PubSubShardChannels(t.Context(), "*").Result()
		if err == nil && len(channels) < c.n {
			err = fmt.Errorf("%d of %d channels", len(channels), c.n)
		}
		return err
	}
	var atOnce, settled clienttest.Spread
	for range redistest.Count(t, 50) {
		c.round(&atOnce, subscribed, func() { s.MoveSlot("{slot}") })
		c.round(&settled, subscribed, func() {
			s.MoveSlot("{slot}")
			redistest.Eventually(t, 10*time.Second, "the waiters listen on the new master", subscribed)
		})
	}
	clienttest.Figure(t, "slot moved under 20 waiters: granted after the release, made at once, within %v; made when they listen again, %v", &atOnce, &settled)
}
