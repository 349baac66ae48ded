// The fault tests share what is in this file: the children that they run as processes, the bounds
// that they measure against, and short ways to lock and release.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// faultChildren are the processes of the fault tests, for TestMain.
var faultChildren = []redistest.ChildFunc{
	redistest.Child("contender", runContender),
	redistest.Child("holder", runHolder),
}

// figure logs a measured value for docs/testing.md. If the test has failed, figure logs nothing, so
// that nobody quotes a failed test.
func figure(t testing.TB, format string, args ...any) {
	t.Helper()
	if t.Failed() {
		return
	}
	t.Logf("figure: "+format, args...)
}

// leaveNothing registers a check that runs when t ends, after everything that t opens later has
// closed. The check fails unless rdb's servers have no keys left but tokens, which are meant to
// stay.
func leaveNothing(t testing.TB, rdb redis.UniversalClient, allowed ...string) {
	t.Cleanup(func() {
		if t.Failed() {
			return // the first failure says more than what it left
		}
		redistest.LeftBehind(t, rdb, append(allowed, "redisson_lock_token:", "holdfast_lock_token:")...)
	})
}

// leaveNothingOn does what leaveNothing does, for each of the nodes that runs when t ends. The
// nodes include replicas and former masters.
func leaveNothingOn(t testing.TB, nodes []*redistest.Proc) {
	for _, node := range nodes {
		node.Admin() // opened before the check is registered, and so closed after it
	}
	t.Cleanup(func() {
		for _, node := range nodes {
			if node.Running() && !t.Failed() {
				redistest.LeftBehind(t, node.Admin(), "redisson_lock_token:", "holdfast_lock_token:")
			}
		}
	})
}

// attempts is how many attempts a round has. The machine may stand still for so long that an
// attempt shows nothing.
const attempts = 5

// moreAttempts counts an attempt that showed nothing. It fails the test when the number of rounds
// does not excuse so many of these attempts.
func moreAttempts(t testing.TB, failed *int, rounds int, format string, args ...any) {
	t.Helper()
	why := fmt.Sprintf(format, args...)
	if *failed++; *failed > attempts*rounds {
		t.Fatalf("the machine stood still in %d attempts; in the last, %s", *failed, why)
	}
	t.Logf("an attempt that does not count: %s", why)
}

// openClient returns a Client that is closed when t ends.
func openClient(t testing.TB, rdb redis.UniversalClient, options ...holdfast.Option) *holdfast.Client {
	t.Helper()
	c := holdfast.New(rdb, append([]holdfast.Option{holdfast.WithLogger(redistest.Watched())}, options...)...)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// generous returns a context that ends only if there is a defect.
func generous(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// grab locks m and fails the test if Lock fails.
func grab(t testing.TB, m holdfast.Locker) *holdfast.Lease {
	t.Helper()
	l, err := m.Lock(generous(t))
	if err != nil {
		t.Fatalf("Lock: %v", err)
	}
	return l
}

// grabMany locks n names and returns the leases by name.
func grabMany(t testing.TB, c *holdfast.Client, prefix string, n int, options ...holdfast.LeaseOption) map[string]*holdfast.Lease {
	t.Helper()
	leases := make(map[string]*holdfast.Lease, n)
	var mu sync.Mutex
	each(n, 64, func(i int) {
		name := fmt.Sprintf("%s%d", prefix, i)
		l, err := c.Mutex(name, options...).Lock(generous(t))
		if err != nil {
			t.Errorf("Lock %s: %v", name, err)
			return
		}
		mu.Lock()
		leases[name] = l
		mu.Unlock()
	})
	if t.Failed() {
		t.FailNow()
	}
	return leases
}

// giveBack releases the leases and fails the test if a Release fails.
func giveBack(t testing.TB, leases ...*holdfast.Lease) {
	t.Helper()
	for _, l := range leases {
		if err := l.Release(generous(t)); err != nil {
			t.Errorf("Release: %v", err)
		}
	}
}

// giveBackAll does what giveBack does, for the leases that grabMany returned.
func giveBackAll(t testing.TB, leases map[string]*holdfast.Lease) {
	t.Helper()
	var all []*holdfast.Lease
	for _, l := range leases {
		all = append(all, l)
	}
	each(len(all), 64, func(i int) { giveBack(t, all[i]) })
}

// each calls f with 0 to n-1, on at most that many goroutines.
func each(n, goroutines int, f func(i int)) {
	todo := make(chan int)
	var wg sync.WaitGroup
	for range min(n, goroutines) {
		wg.Go(func() {
			for i := range todo {
				f(i)
			}
		})
	}
	for i := range n {
		todo <- i
	}
	close(todo)
	wg.Wait()
}

// upTo returns a random duration below d.
func upTo(d time.Duration) time.Duration { return rand.N(d) }

// heldInRedis fails the test unless the owner of l holds name.
func heldInRedis(t testing.TB, rdb redis.UniversalClient, name string, l *holdfast.Lease) {
	t.Helper()
	if ok, err := rdb.HExists(generous(t), name, l.Owner().String()).Result(); err != nil || !ok {
		t.Errorf("%s is not held in Redis any more (%v)", name, err)
	}
}

// stillHeld fails the test unless the lease lasts, both here and in Redis.
func stillHeld(t testing.TB, rdb redis.UniversalClient, name string, l *holdfast.Lease) {
	t.Helper()
	if err := l.Err(); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	heldInRedis(t, rdb, name, l)
}

// lostBy waits for the end of the lease. It fails the test unless the lease was lost and the holder
// was told so by the given instant. It returns the instant at which the holder was told.
func lostBy(t testing.TB, p *pulse, l *holdfast.Lease, by time.Time) time.Time {
	t.Helper()
	select {
	case <-l.Done():
	case <-time.After(time.Minute):
		t.Error("the lease has not ended within a minute")
		return time.Now()
	}
	told := time.Now()
	if !errors.Is(l.Err(), holdfast.ErrLost) {
		t.Errorf("the lease ended with %v, want ErrLost", l.Err())
	}
	if over := told.Sub(by); over > p.slack(by, told) {
		t.Errorf("told %v late (starved for %v of it)", over, p.slack(by, told))
	}
	return told
}

// pulse is the account of the time for which this process was starved; see redistest.Pulse.
type pulse struct{ *redistest.Pulse }

// feelPulse starts a pulse; it stops when t ends.
func feelPulse(t testing.TB) *pulse { return &pulse{redistest.FeelPulse(t)} }

// slack returns how late anything that ran between the two instants may be.
func (p *pulse) slack(from, to time.Time) time.Duration { return p.Slack(from, to) }

// within fails the test if the time since start is longer than bound plus the slack.
func (p *pulse) within(t testing.TB, what string, start time.Time, bound time.Duration) {
	t.Helper()
	p.Within(t, what, start, bound)
}

// spread is a set of durations from which the tests report percentiles.
type spread struct {
	mu  sync.Mutex
	all []time.Duration

	starvable bool          // addBeyond gave the slack of each
	own       time.Duration // the longest duration after its slack is subtracted
}

func (s *spread) add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}

// addBeyond adds a duration in which this process may have been starved for slack. So a reader can
// tell a worst case of the machine from a worst case of ours.
func (s *spread) addBeyond(d, slack time.Duration) {
	s.add(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starvable = true
	s.own = max(s.own, d-slack)
}

// at returns the percentile of the durations; 100 is the worst.
func (s *spread) at(percentile float64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return 0
	}
	slices.Sort(s.all)
	i := int(percentile / 100 * float64(len(s.all)))
	return s.all[min(i, len(s.all)-1)]
}

func (s *spread) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	n := len(s.all)
	text := fmt.Sprintf("p50 %v, p99 %v, worst %v of %d", round(s.at(50)), round(s.at(99)), round(s.at(100)), n)
	if s.starvable {
		text += fmt.Sprintf(" (beyond starvation at most %v)", round(s.own))
	}
	return text
}
