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

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// load is a set of callers. They lock and release a few names, over and over, until the load ends.
type load struct {
	t      testing.TB
	mutual bool // overlaps and lost leases are failures
	grants atomic.Int64
	ended  chan struct{}
	wg     sync.WaitGroup
}

// start starts four callers on each name, through the clients in turn.
func (d *load) start(names []string, option holdfast.LeaseOption, clients ...*holdfast.Client) {
	d.ended = make(chan struct{})
	for _, name := range names {
		inside := new(atomic.Int32)
		for k := range 4 {
			m := clients[k%len(clients)].Mutex(name, option)
			d.wg.Go(func() {
				for {
					select {
					case <-d.ended:
						return
					default:
						d.turn(m, inside)
					}
				}
			})
		}
	}
}

func (d *load) turn(m holdfast.Locker, inside *atomic.Int32) {
	l, err := m.Lock(clienttest.Generous(d.t))
	if err != nil {
		d.t.Errorf("Lock: %v", err)
		return
	}
	if n := inside.Add(1); n != 1 && d.mutual && l.Err() == nil {
		d.t.Errorf("overlap: %d are inside", n)
	}
	d.grants.Add(1)
	time.Sleep(time.Millisecond)
	inside.Add(-1)
	err = l.Release(clienttest.Generous(d.t))
	if lost := errors.Is(err, holdfast.ErrLost) || errors.Is(err, context.DeadlineExceeded); err != nil && (d.mutual || !lost) {
		d.t.Errorf("Release: %v", err)
	}
}

// awaitGrants waits for so many more grants that one was asked for after this call.
func (d *load) awaitGrants(names int) {
	before := d.grants.Load()
	redistest.Eventually(d.t, time.Minute, "grants", func() error {
		if n := d.grants.Load() - before; n <= int64(4*names) {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
}

func (d *load) end() {
	close(d.ended)
	d.wg.Wait()
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

// failoverLease is the length of a lease that outlives a failover.
const failoverLease = 15 * time.Second

// contendedLease is the length of the leases on the contended lock. It is short: if a release has
// not reached the promoted master, the hold stays there for the rest of its lease.
const contendedLease = 2 * time.Second

// replicated waits until n replicas have what the master has.
func replicated(t testing.TB, master *redistest.Proc, n int) {
	t.Helper()
	got, err := master.Admin().Do(t.Context(), "WAIT", n, 60_000).Int()
	if err != nil || got < n {
		t.Fatalf("WAIT %d: %d, %v", n, got, err)
	}
}

// failover is a set of servers of which one fails over.
type failover struct {
	nodes      []*redistest.Proc
	client     func() redis.UniversalClient
	prefix     string // of the names on the master that fails
	replicated func()
	fail       func() // returns when there is a new master
	settle     func()
}

// outlive fails the test unless twenty renewed leases outlive the failover, and callers of a contended lock
// are granted it before and after.
func (f failover) outlive(t *testing.T) {
	clienttest.LeaveNothingOn(t, f.nodes)
	a, b := clienttest.OpenClient(t, f.client()), clienttest.OpenClient(t, f.client())
	leases := clienttest.GrabMany(t, a, f.prefix, 20, holdfast.Renewed(failoverLease))
	f.replicated()
	d := &load{t: t}
	d.start([]string{"contended"}, holdfast.Renewed(contendedLease), a, b)
	d.awaitGrants(1)
	f.fail()
	d.awaitGrants(1)
	renewed(t, leases)
	vouched(t, leases, failoverLease)
	f.settle()
	d.end()
	vouched(t, leases, failoverLease)
	clienttest.GiveBackAll(t, leases)
}

func TestFailover(t *testing.T) {
	sentinel := func(fail func(*redistest.SentinelSet) (frozen *redistest.Proc)) func(t *testing.T) failover {
		return func(t *testing.T) failover {
			s := redistest.Sentinel(t)
			f := failover{nodes: s.Nodes(), client: func() redis.UniversalClient { return s.Client(t) }, prefix: "failover"}
			f.replicated = func() { replicated(t, s.Master(), 2) }
			f.fail = func() {
				frozen := fail(s)
				s.Master()
				if frozen != nil {
					frozen.Thaw()
				}
			}
			f.settle = s.Settle // a running former master loses its data
			return f
		}
	}
	cluster := func(fail func(*redistest.ClusterSet)) func(t *testing.T) failover {
		return func(t *testing.T) failover {
			s := redistest.Cluster(t, 3, 1)
			f := failover{nodes: s.Nodes(), client: func() redis.UniversalClient { return s.Client(t) }, prefix: "failover{contended}"}
			f.replicated = func() { replicated(t, s.MasterOf("contended"), 1) }
			f.fail = func() { fail(s); s.MasterOf("contended") }
			f.settle = func() {}
			return f
		}
	}
	for name, of := range map[string]func(t *testing.T) failover{
		"Sentinel, planned": sentinel(func(s *redistest.SentinelSet) *redistest.Proc { s.Failover(); return nil }), // it serves on
		"Sentinel, killed":  sentinel(func(s *redistest.SentinelSet) *redistest.Proc { s.KillMaster(); return nil }),
		"Sentinel, frozen":  sentinel((*redistest.SentinelSet).FreezeMaster), // it takes itself for the master when it thaws
		"Cluster, planned":  cluster(func(s *redistest.ClusterSet) { s.Failover("contended") }),
		"Cluster, killed":   cluster(func(s *redistest.ClusterSet) { s.KillMasterOf("contended") }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for round := range redistest.Count(t, 10) {
				t.Run(fmt.Sprint(round), func(t *testing.T) { of(t).outlive(t) })
			}
		})
	}
}

// Slots move to and fro under load, and locks work on without an overlap. Some slots move slowly,
// with the lock on one side and its token on the other.
func TestSlotsMove(t *testing.T) {
	t.Parallel()
	s := redistest.Cluster(t, 3, 0)
	clienttest.LeaveNothingOn(t, s.Nodes())
	a, b := clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, s.Client(t))
	leases := clienttest.GrabMany(t, a, "held{slot}", 20, holdfast.Renewed(keptLease))
	d := &load{t: t, mutual: true}
	d.start([]string{"moving0{slot}", "moving1{slot}", "moving2{slot}"}, holdfast.Renewed(30*time.Second), a, b)
	moves := redistest.Count(t, 500)
	for i := range moves {
		move := s.OpenSlot("{slot}")
		if i%4 == 0 {
			keys := move.Keys()
			move.MoveKeys(keys[:len(keys)/2]...)
		}
		move.Finish()
		d.awaitGrants(1)
	}
	d.end()
	renewed(t, leases)
	vouched(t, leases, keptLease)
	clienttest.GiveBackAll(t, leases)
	clienttest.Figure(t, "%d slot moves under %d grants: 0 errors, 0 overlaps, 20 held leases kept", moves, d.grants.Load())
}

// A slot may stay open for long. A hold in it is renewed and released there. A new lock has to
// wait, for as long as its context allows. Its waiters listen on the new master once the slot has moved.
func TestSlotStaysOpen(t *testing.T) {
	t.Parallel()
	s := redistest.Cluster(t, 3, 0)
	clienttest.LeaveNothingOn(t, s.Nodes())
	c := clienttest.OpenClient(t, s.Client(t))
	leases := clienttest.GrabMany(t, c, "open{slot}", 20, holdfast.Renewed(keptLease))
	released := clienttest.GrabMany(t, c, "released{slot}", 20)
	clienttest.GiveBack(t, clienttest.Grab(t, c.Mutex("split{slot}")))

	move := s.OpenSlot("{slot}")
	keys := move.Keys()
	move.MoveKeys(keys[:len(keys)/2]...)
	clienttest.GiveBackAll(t, released)
	ctx := redistest.Within(t, 300*time.Millisecond)
	for name := range leases {
		if _, err := c.Mutex(name).Lock(ctx); err == nil {
			t.Errorf("%s was granted twice", name)
		}
	}
	next, err := beside(func() (*holdfast.Lease, error) { return c.Mutex("new{slot}").Lock(clienttest.Generous(t)) }, func() error {
		renewed(t, leases)
		vouched(t, leases, keptLease)
		move.Finish()
		return nil
	})
	if err != nil {
		t.Fatalf("a Lock that waited for the slot to close: %v", err)
	}
	waiter, err := beside(func() (*holdfast.Lease, error) { return c.Mutex("new{slot}").Lock(clienttest.Generous(t)) }, func() error {
		s.MoveSlot("{slot}")
		return next.Release(clienttest.Generous(t))
	})
	if err != nil {
		t.Fatalf("a Lock that waited while the slot moved: %v", err)
	}
	clienttest.GiveBack(t, waiter)
	vouched(t, leases, keptLease)
	clienttest.GiveBackAll(t, leases)
}
