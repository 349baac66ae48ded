// Very many held locks are renewed in time, by a fixed number of goroutines.

package faults

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestManyHeldLocks(t *testing.T) {
	redistest.Undisturbed(t, time.Second, func(t testing.TB) {
		const many, length = 10_000, 6 * time.Second
		s := redistest.Server(t)
		clienttest.LeaveNothing(t, s.Admin())
		p := redistest.FeelPulse(t)
		c := clienttest.OpenClient(t, s.Client(t))
		clienttest.GiveBackAll(t, clienttest.GrabMany(t, c, "warm", 200)) // opens everything that the Client opens anyway
		before := runtime.NumGoroutine()
		leases := clienttest.GrabMany(t, c, "held", many, holdfast.Renewed(length))
		if grown := runtime.NumGoroutine() - before; grown > 20 {
			t.Errorf("%d goroutines more with %d locks held", grown, many)
		}
		began := time.Now()
		late := watchRenewals(leases, length)
		if n := len(late); n < 2*many {
			t.Fatalf("%d renewals of %d locks in %v", n, many, length)
		}
		p99 := late[len(late)*99/100]
		if slack := p.Slack(began, time.Now()); p99 > length/10+slack {
			t.Errorf("renewals were late: p99 %v (starved for %v)", p99, slack)
		}
		for name, l := range leases {
			if err := l.Err(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		clienttest.GiveBackAll(t, leases)
		clienttest.Figure(t, "%d locks held for a lease of %v: renewals late by p50 %v, p99 %v, worst %v; none lost",
			many, length, late[len(late)/2], p99, late[len(late)-1])
	})
}

// watchRenewals watches leases for as long as each of them lasts, and returns how late their renewals were
// sent. A renewal is due a third of the lease after the one before it. It moves the deadline by the time
// between the two.
func watchRenewals(leases map[string]*holdfast.Lease, length time.Duration) (late []time.Duration) {
	deadlines := make(map[string]time.Time, len(leases))
	for name, l := range leases {
		deadlines[name] = l.Deadline()
	}
	for until := time.Now().Add(length); time.Now().Before(until); time.Sleep(length / 20) {
		for name, l := range leases {
			deadline := l.Deadline()
			if moved := deadline.Sub(deadlines[name]); moved > 0 {
				late = append(late, max(0, moved-length/3))
				deadlines[name] = deadline
			}
		}
	}
	slices.Sort(late)
	return late
}
