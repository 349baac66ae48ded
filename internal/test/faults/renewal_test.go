// Very many held locks are renewed in time, by a fixed number of goroutines.

package faults

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// watchRenewals watches leases of that length for the time for_, and returns how late each of their
// renewals was sent. A renewal is due a third of the lease after the renewal before it. It moves
// the deadline by the time between the two.
func watchRenewals(leases map[string]*holdfast.Lease, length, for_ time.Duration) *clienttest.Spread {
	var late clienttest.Spread
	deadlines := make(map[string]time.Time, len(leases))
	for name, l := range leases {
		deadlines[name] = l.Deadline()
	}
	for until := time.Now().Add(for_); time.Now().Before(until); time.Sleep(length / 20) {
		for name, l := range leases {
			deadline := l.Deadline()
			if moved := deadline.Sub(deadlines[name]); moved > 0 {
				late.Add(max(0, moved-length/3))
				deadlines[name] = deadline
			}
		}
	}
	return &late
}

const manyLocks = 10_000

func TestManyHeldLocks(t *testing.T) {
	redistest.Undisturbed(t, time.Second, func(t testing.TB) {
		const length = 6 * time.Second
		s := redistest.Server(t)
		clienttest.LeaveNothing(t, s.Admin())
		p := redistest.FeelPulse(t)
		c := clienttest.OpenClient(t, s.Client(t))
		clienttest.GiveBackAll(t, clienttest.GrabMany(t, c, "warm", 200)) // opens everything that the Client opens anyway
		before := runtime.NumGoroutine()
		leases := clienttest.GrabMany(t, c, "held", manyLocks, holdfast.Renewed(length))
		if grown := runtime.NumGoroutine() - before; grown > 20 {
			t.Errorf("%d goroutines more with %d locks held", grown, manyLocks)
		}
		began := time.Now()
		late := watchRenewals(leases, length, length)
		if n := len(late.All); n < 2*manyLocks {
			t.Errorf("%d renewals of %d locks in %v", n, manyLocks, length)
		}
		if slack := p.Slack(began, time.Now()); late.At(99) > length/10+slack {
			t.Errorf("renewals were late: %v (starved for %v)", late, slack)
		}
		for name, l := range leases {
			if err := l.Err(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		clienttest.GiveBackAll(t, leases)
		clienttest.Figure(t, "%d locks held for a lease of %v: renewals late by %v; none lost", manyLocks, length, late)
	})
}

// BenchmarkRenewalLateness holds 10 000 locks and reports how late their renewals
// are sent. One iteration is a third of a lease of 3 s.
func BenchmarkRenewalLateness(b *testing.B) {
	const length = 3 * time.Second
	s := redistest.Server(b)
	c := clienttest.OpenClient(b, s.Client(b))
	leases := clienttest.GrabMany(b, c, "held", manyLocks, holdfast.Renewed(length))
	b.ResetTimer()
	late := watchRenewals(leases, length, time.Duration(b.N)*length/3+length/3)
	b.StopTimer()
	for name, l := range leases {
		if err := l.Err(); err != nil {
			b.Errorf("%s: %v", name, err)
		}
	}
	clienttest.GiveBackAll(b, leases)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(late.At(50)), "ms-late-p50")
	b.ReportMetric(ms(late.At(99)), "ms-late-p99")
	b.ReportMetric(ms(late.At(100)), "ms-late-max")
}

// A master that stands still delays no renewals on the other masters.
func TestOneOfThreeMastersFrozen(t *testing.T) {
	t.Parallel()
	const length = 3 * time.Second
	set := redistest.Cluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	rdb := set.Client(t)
	clienttest.LeaveNothing(t, rdb)
	p := redistest.FeelPulse(t)
	c := clienttest.OpenClient(t, set.Client(t))
	leases := clienttest.GrabMany(t, c, "spread", 300, holdfast.Renewed(length))
	frozen := set.Nodes()[0] // the node with slot 0, which a careless client asks first
	cut, well := make(map[string]*holdfast.Lease), make(map[string]*holdfast.Lease)
	for name, l := range leases {
		if set.MasterOf(name) == frozen {
			cut[name] = l
		} else {
			well[name] = l
		}
	}
	began := time.Now()
	frozen.Freeze()
	deadlines := make(map[string]time.Time)
	time.Sleep(50 * time.Millisecond) // replies that came before have been read
	for name, l := range cut {
		deadlines[name] = l.Deadline()
	}
	late := watchRenewals(well, length, length+length/3)
	for name, l := range cut {
		by := deadlines[name]
		if err := l.Err(); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("%s on the frozen master: %v, want ErrLost", name, err)
		}
		if l.Deadline().After(by) {
			t.Errorf("%s: the deadline moved by %v while its master was frozen", name, l.Deadline().Sub(by))
		}
	}
	slack := p.Slack(began, time.Now())
	if late.At(100) > length/10+slack {
		t.Errorf("renewals on the other masters were late: %v (starved for %v)", late, slack)
	}
	for name, l := range well {
		if err := l.Err(); err != nil {
			t.Errorf("%s on another master: %v", name, err)
		}
	}
	releasing := time.Now()
	clienttest.GiveBackAll(t, well)
	p.Within(t, "releasing what is on the other masters", releasing, time.Second)
	frozen.Thaw()
	clienttest.Figure(t, "one of three masters frozen: %d leases on it all lost, %d on the others kept, their renewals late by %v",
		len(cut), len(well), late)
	redistest.Eventually(t, 20*time.Second, "the cluster is whole again", func() error {
		return rdb.ForEachMaster(t.Context(), func(ctx context.Context, m *redis.Client) error {
			info, err := m.ClusterInfo(ctx).Result()
			if err == nil && !strings.Contains(info, "cluster_slots_ok:16384") {
				err = fmt.Errorf("cluster info: %s", info)
			}
			return err
		})
	})
}
