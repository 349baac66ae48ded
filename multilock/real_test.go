// These tests show on real servers what the locks promise when servers are stopped.

package multilock_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/multilock"
)

// fleet is a group of independent servers.
type fleet struct {
	t       *testing.T
	servers []*redistest.Proc
	rdbs    []*redis.Client // clients of the test itself
	pulse   *redistest.Pulse
}

// newFleet starts n servers. When the test ends, the servers that still run may have only tokens
// and markers left.
func newFleet(t *testing.T, n int) *fleet {
	t.Helper()
	f := &fleet{t: t, pulse: redistest.FeelPulse(t)}
	for range n {
		s := redistest.Server(t)
		f.servers, f.rdbs = append(f.servers, s), append(f.rdbs, s.Client(t))
	}
	t.Cleanup(func() {
		for i, s := range f.servers {
			if s.Running() {
				redistest.LeftBehind(t, f.rdbs[i], world.AllTokens, markerKey)
			}
		}
	})
	return f
}

// clients returns a Client for each server, as one process has them.
func (f *fleet) clients() []*holdfast.Client {
	f.t.Helper()
	var clients []*holdfast.Client
	for _, s := range f.servers {
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
		c := holdfast.New(rdb)
		f.t.Cleanup(func() { c.Close(); rdb.Close() })
		clients = append(clients, c)
	}
	return clients
}

// wantFree fails the test unless name becomes free on every server that runs. It allows one second
// plus the time for which this process was starved.
func (f *fleet) wantFree() {
	f.t.Helper()
	asked := time.Now()
	defer func() { f.pulse.Within(f.t, "the end of the hold on each server", asked, time.Second) }()
	redistest.Eventually(f.t, 30*time.Second, "free", func() error {
		for i, s := range f.servers {
			if !s.Running() {
				continue
			}
			if held, err := f.rdbs[i].Exists(f.t.Context(), name).Result(); err != nil || held > 0 {
				return fmt.Errorf("held on server %d, %v", i, err)
			}
		}
		return nil
	})
}

// begun waits until the quorum has begun, which means that every server has its marker.
func (f *fleet) begun() {
	f.t.Helper()
	redistest.Eventually(f.t, 10*time.Second, "the markers", func() error {
		for i, rdb := range f.rdbs {
			if n, err := rdb.Exists(f.t.Context(), markerKey).Result(); n != 1 {
				return fmt.Errorf("none on server %d, %v", i, err)
			}
		}
		return nil
	})
}

func TestAllOfThreeServers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	var lockers []holdfast.Locker
	for _, c := range f.clients() {
		lockers = append(lockers, c.Mutex(name))
	}
	m := holdfast.NewMultiLock(lockers...)
	for mask := range 8 {
		for i, s := range f.servers {
			if mask&(1<<i) == 0 {
				s.Freeze()
			}
		}
		bound := 500 * time.Millisecond
		if mask == 7 {
			bound = 30 * time.Second // the lock is granted
		}
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		l, err := m.Lock(ctx)
		cancel()
		if (err == nil) != (mask == 7) {
			t.Errorf("%03b: %v", mask, err)
		}
		if err == nil {
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		f.wantFree()
		for _, s := range f.servers {
			s.Thaw()
		}
		f.wantFree()
	}
}

func TestOppositeOrders(t *testing.T) {
	f := newFleet(t, 2)
	var inside, overlaps atomic.Int64
	var wg sync.WaitGroup
	for i := range 2 {
		c := f.clients()
		lockers := []holdfast.Locker{c[0].Mutex(name), c[1].Mutex(name), c[0].Mutex("another")}
		if i == 1 {
			lockers[0], lockers[2] = lockers[2], lockers[0]
		}
		wg.Go(func() {
			for range redistest.CountOfWork(t, 10_000) {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				l, err := holdfast.NewMultiLock(lockers...).Lock(ctx)
				cancel()
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) > 1 {
					overlaps.Add(1)
				}
				inside.Add(-1)
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := overlaps.Load(); n > 0 {
		t.Errorf("%d overlaps", n)
	}
}

func TestAFailingReleaseFreesTheRest(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	var lockers []holdfast.Locker
	for _, c := range f.clients() {
		lockers = append(lockers, c.Mutex(name, holdfast.Renewed(3*time.Second)))
	}
	l, err := holdfast.NewMultiLock(lockers...).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.servers[1].Freeze()
	done := make(chan error)
	go func() { done <- l.Release(t.Context()) }()
	f.wantFree()
	if err := <-done; err == nil {
		t.Error("no error")
	}
	f.servers[1].Thaw()
	time.Sleep(100 * time.Millisecond)
	f.wantFree()
}

func TestMajorityOfFiveServers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5)
	// The quorum waits a tenth of the lease for a server that does not answer.
	q := holdfast.NewQuorum(name, f.clients(), holdfast.Renewed(3*time.Second))
	if l, err := q.Lock(t.Context()); err != nil {
		t.Fatal(err)
	} else {
		release(t, l)
	}
	last := int64(0)
	for mask := range 32 {
		for i, s := range f.servers {
			if mask&(1<<i) == 0 {
				s.Freeze()
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		began := time.Now()
		lock := q.Lock
		if bits.OnesCount(uint(mask)) < 3 {
			lock = q.TryLock // there is no majority to wait for
		}
		l, err := lock(ctx)
		cancel()
		if (err == nil) != (bits.OnesCount(uint(mask)) >= 3) {
			t.Errorf("%05b: %v after %v", mask, err, time.Since(began))
		}
		if err != nil {
			world.WantErr(t, err, holdfast.ErrNoQuorum)
		} else {
			if l.Token() <= last {
				t.Errorf("%05b: token %d after %d", mask, l.Token(), last)
			}
			last = l.Token()
			release(t, l)
		}
		f.wantFree()
		for _, s := range f.servers {
			s.Thaw()
		}
		f.wantFree()
	}
}

func TestReal_QuorumOfKilledServers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5)
	q := holdfast.NewQuorum(name, f.clients())
	for up := 5; up >= 1; up-- {
		l, err := q.TryLock(t.Context())
		if (err == nil) != (up >= 3) {
			t.Errorf("%d up: %v", up, err)
		}
		if err == nil {
			release(t, l)
		}
		f.wantFree()
		f.servers[up-1].Kill()
	}
}

// A holder whose majority dies learns of its loss before its lease can be over on any server.
func TestReal_QuorumMajorityDies(t *testing.T) {
	t.Parallel()
	const length = 4 * time.Second
	for _, tc := range []struct {
		how  string
		down func(*redistest.Proc)
	}{{"killed", (*redistest.Proc).Kill}, {"frozen", (*redistest.Proc).Freeze}} {
		t.Run(tc.how, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 5)
			l, err := holdfast.NewQuorum(name, f.clients(), holdfast.Renewed(length)).Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx := l.Context(t.Context())
			tc.down(f.servers[0])
			tc.down(f.servers[1])
			time.Sleep(length + length/2)
			wantLive(t, l, ctx)
			tc.down(f.servers[2])
			died := time.Now()
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			f.pulse.Within(t, "the telling", died, length)
			wantEnded(t, l, ctx, holdfast.ErrLost)
			f.wantFree()
		})
	}
}

// belief records who believes to hold the lock.
type belief struct {
	mu       sync.Mutex
	holder   *multilock.QuorumLease
	last     int64
	grants   int
	overlaps []string
}

// enter notes a grant. A holder that learned of a loss no longer believes to hold the lock.
func (b *belief) enter(l *multilock.QuorumLease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// A holder whose deadline has passed learns of it as soon as its process runs.
	if b.holder != nil && b.holder.Err() == nil && time.Now().Before(b.holder.Deadline()) {
		b.overlaps = append(b.overlaps, fmt.Sprintf("%d with %d", l.Token(), b.holder.Token()))
	}
	if l.Token() <= b.last {
		b.overlaps = append(b.overlaps, fmt.Sprintf("token %d after %d", l.Token(), b.last))
	}
	b.holder, b.last = l, l.Token()
	b.grants++
}

func (b *belief) leave(l *multilock.QuorumLease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.holder == l {
		b.holder = nil
	}
}

// contend makes some processes take turns until stop, and returns what they saw.
func (f *fleet) contend(processes int, length, work time.Duration, during func()) *belief {
	b := new(belief)
	ctx, stop := context.WithCancel(f.t.Context())
	var wg sync.WaitGroup
	for range processes {
		q := holdfast.NewQuorum(name, f.clients(), holdfast.Renewed(length))
		wg.Go(func() {
			for ctx.Err() == nil {
				l, err := q.Lock(ctx)
				if err != nil {
					if ctx.Err() == nil {
						f.t.Error(err)
					}
					continue
				}
				b.enter(l)
				select {
				case <-time.After(rand.N(work)):
				case <-l.Done():
				}
				b.leave(l)
				if err := l.Release(context.Background()); err != nil && !errors.Is(err, holdfast.ErrLost) {
					f.t.Log(err)
				}
			}
		})
	}
	during()
	stop()
	wg.Wait()
	return b
}

func TestReal_QuorumContention(t *testing.T) {
	f := newFleet(t, 5)
	b := f.contend(6, 10*time.Second, 4*time.Millisecond, func() {
		time.Sleep(time.Duration(redistest.Count(t, 20_000)) * time.Millisecond)
	})
	f.wantFree()
	if len(b.overlaps) > 0 {
		t.Errorf("overlaps: %q", b.overlaps)
	}
	if b.grants < 20 {
		t.Errorf("only %d grants", b.grants)
	}
	t.Logf("%d grants", b.grants)
}

// A member that restarts without its data never lets a second holder in.
func TestReal_QuorumAmnesia(t *testing.T) {
	t.Parallel()
	const length = time.Second
	f := newFleet(t, 3)
	b := f.contend(4, length, 2*length/3, func() {
		f.begun()
		for i := range redistest.Count(t, 40) {
			f.servers[i%3].Restart(false)
			time.Sleep(length + length/2 + rand.N(length/2)) // only one server at a time is empty
		}
	})
	if len(b.overlaps) > 0 {
		t.Errorf("overlaps: %q", b.overlaps)
	}
	if b.grants < 5 {
		t.Errorf("only %d grants", b.grants)
	}
	t.Logf("%d grants", b.grants)
}

// A holds two of three servers. One of these comes back empty, and the third server is back. B then
// finds a majority without A's lock, but must not get the lock while A holds it.
func TestAnEmptyMemberIsKeptOut(t *testing.T) {
	t.Parallel()
	const length = 3 * time.Second
	f := newFleet(t, 3)
	a := holdfast.NewQuorum(name, f.clients(), holdfast.Renewed(length))
	b := holdfast.NewQuorum(name, f.clients(), holdfast.Renewed(length))
	first, err := a.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release(t, first)
	f.begun()
	f.servers[2].Freeze()
	held, err := a.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.servers[1].Restart(false)
	f.servers[2].Thaw()
	restarted, tries := time.Now(), 0
	for {
		next, err := b.TryLock(t.Context())
		lost := held.Err()
		if err == nil {
			if lost == nil && time.Now().Before(held.Deadline()) {
				t.Errorf("B is in with A, %v after the restart", time.Since(restarted))
			}
			if next.Token() <= held.Token() {
				t.Errorf("token %d after %d", next.Token(), held.Token())
			}
			release(t, next)
			break
		}
		if tries++; time.Since(restarted) > 10*length {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	world.WantErr(t, held.Release(t.Context()), holdfast.ErrLost)
	t.Logf("B is in %v after the restart, at the %dth try", time.Since(restarted), tries+1)
}
