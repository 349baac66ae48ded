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

// contend has four callers lock and release a lock, over and over, through the clients in turn. more waits for so many
// more grants that one was asked for after its call.
func contend(t *testing.T, name string, option holdfast.LeaseOption, clients ...*holdfast.Client) (more, end func()) {
	var grants atomic.Int64
	var ended atomic.Bool
	var callers sync.WaitGroup
	for k := range 4 {
		m := clients[k%len(clients)].Mutex(name, option)
		callers.Go(func() {
			for !ended.Load() {
				l, err := m.Lock(clienttest.Generous(t))
				if err != nil {
					t.Errorf("Lock: %v", err)
					continue
				}
				grants.Add(1)
				time.Sleep(time.Millisecond)
				err = l.Release(clienttest.Generous(t))
				if err != nil && !errors.Is(err, holdfast.ErrLost) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Release: %v", err)
				}
			}
		})
	}
	more = func() {
		before := grants.Load()
		redistest.Eventually(t, time.Minute, "grants", func() error {
			if n := grants.Load() - before; n <= 4 {
				return fmt.Errorf("%d", n)
			}
			return nil
		})
	}
	return more, func() {
		ended.Store(true)
		callers.Wait()
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
	more, end := contend(t, "contended", holdfast.Renewed(contendedLease), a, b)
	more()
	f.fail()
	more()
	renewed(t, leases)
	vouched(t, leases, failoverLease)
	f.settle()
	end()
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
