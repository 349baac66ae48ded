// Package clienttest has what tests of a Client share: short ways to lock and release, and to see what is left.
// Only tests import it.
package clienttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Figure logs a measured value. If the test has failed, Figure logs nothing, so that nobody quotes a failed test.
func Figure(t testing.TB, format string, args ...any) {
	t.Helper()
	if t.Failed() {
		return
	}
	t.Logf("figure: "+format, args...)
}

// LeaveNothing registers a check that runs when t ends, after everything that t opens later has closed. The check fails
// unless rdb's servers have no keys left but tokens, which are meant to stay.
func LeaveNothing(t testing.TB, rdb redis.UniversalClient, allowed ...string) {
	t.Cleanup(func() {
		if t.Failed() {
			return // the first failure says more than what it left
		}
		redistest.LeftBehind(t, rdb, append(allowed, "redisson_lock_token:", "holdfast_lock_token:")...)
	})
}

// LeaveNothingOn does what LeaveNothing does, for each of the nodes that runs when t ends. The
// nodes include replicas and former masters.
func LeaveNothingOn(t testing.TB, nodes []*redistest.Proc) {
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

// OpenClient returns a Client that is closed when t ends.
func OpenClient(t testing.TB, rdb redis.UniversalClient, options ...holdfast.Option) *holdfast.Client {
	t.Helper()
	c := holdfast.New(rdb, append([]holdfast.Option{holdfast.WithLogger(redistest.Watched())}, options...)...)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Generous returns a context that ends only if there is a defect.
func Generous(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Grab locks m and fails the test if Lock fails.
func Grab(t testing.TB, m holdfast.Locker) *holdfast.Lease {
	t.Helper()
	l, err := m.Lock(Generous(t))
	if err != nil {
		t.Fatalf("Lock: %v", err)
	}
	return l
}

// GrabMany locks n names and returns the leases by name.
func GrabMany(t testing.TB, c *holdfast.Client, prefix string, n int, options ...holdfast.LeaseOption) map[string]*holdfast.Lease {
	t.Helper()
	leases := make(map[string]*holdfast.Lease, n)
	var mu sync.Mutex
	Each(n, 64, func(i int) {
		name := fmt.Sprintf("%s%d", prefix, i)
		l, err := c.Mutex(name, options...).Lock(Generous(t))
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

// GiveBack releases the leases and fails the test if a Release fails.
func GiveBack(t testing.TB, leases ...*holdfast.Lease) {
	t.Helper()
	for _, l := range leases {
		if err := l.Release(Generous(t)); err != nil {
			t.Errorf("Release: %v", err)
		}
	}
}

// GiveBackAll does what GiveBack does, for the leases that GrabMany returned.
func GiveBackAll(t testing.TB, leases map[string]*holdfast.Lease) {
	t.Helper()
	var all []*holdfast.Lease
	for _, l := range leases {
		all = append(all, l)
	}
	Each(len(all), 64, func(i int) { GiveBack(t, all[i]) })
}

// Each calls f with 0 to n-1, on at most that many goroutines.
func Each(n, goroutines int, f func(i int)) {
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

// UpTo returns a random duration below d.
func UpTo(d time.Duration) time.Duration { return rand.N(d) }

// StillHeld fails the test unless the lease lasts, both here and in Redis.
func StillHeld(t testing.TB, rdb redis.UniversalClient, name string, l *holdfast.Lease) {
	t.Helper()
	if err := l.Err(); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if ok, err := rdb.HExists(Generous(t), name, l.Owner().String()).Result(); err != nil || !ok {
		t.Errorf("%s is not held in Redis any more (%v)", name, err)
	}
}

// User gives the server a user and returns the client's options for it.
func User(t testing.TB, s *redistest.Proc, name string, rules ...string) func(*redis.Options) {
	t.Helper()
	args := []any{"ACL", "SETUSER", name, "reset", "resetchannels", "on", ">secret"} // Redis 6 begins with all channels
	for _, rule := range rules {
		args = append(args, rule)
	}
	redistest.Must(t, s.Admin().Do(t.Context(), args...).Err())
	return func(o *redis.Options) { o.Username, o.Password = name, "secret" }
}
