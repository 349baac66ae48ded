// Redis forgets its scripts, restarts with its data, or restarts without its data.

package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestScriptsFlushedUnderLoad(t *testing.T) {
	redistest.Undisturbed(t, 250*time.Millisecond, func(t testing.TB) {
		s := redistest.Server(t)
		clienttest.LeaveNothing(t, s.Admin())
		c := clienttest.OpenClient(t, s.Client(t))
		kept := clienttest.GrabMany(t, c, "kept", 20, holdfast.Renewed(time.Second))

		stop := make(chan struct{})
		var wg sync.WaitGroup
		flushes := 0
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
				}
				if err := s.Admin().ScriptFlush(context.Background()).Err(); err != nil {
					t.Errorf("SCRIPT FLUSH: %v", err)
				}
				flushes++
			}
		})
		operations := redistest.CountOfWork(t, 25_000) // of four calls each
		records := make([]record, 10)
		clienttest.Each(operations, 50, func(i int) {
			name := fmt.Sprintf("flushed%d", i%len(records))
			if err := nestedPair(t, c, s.Admin(), name, &records[i%len(records)]); err != nil {
				redistest.Inexcusable(t, "%s: %v", name, err) // these leases last for 30 s
			}
		})
		time.Sleep(time.Second) // some more renewals
		close(stop)
		wg.Wait()
		for name, l := range kept {
			clienttest.StillHeld(t, s.Admin(), name, l)
		}
		clienttest.GiveBackAll(t, kept)
		clienttest.Figure(t, "scripts flushed %d times under %d calls: 0 errors", flushes, 4*operations)
	})
}

func TestRestartWithData(t *testing.T) {
	t.Parallel()
	const length = 3 * time.Second
	s := redistest.Server(t, "--appendonly", "yes", "--appendfsync", "always")
	clienttest.LeaveNothing(t, s.Admin())
	c := clienttest.OpenClient(t, s.Client(t))
	leases := clienttest.GrabMany(t, c, "restarted", 20, holdfast.Renewed(length))
	var outages, next clienttest.Spread
	rounds, slow := redistest.Count(t, 20), 0
	for len(next.All) < rounds {
		time.Sleep(clienttest.UpTo(300 * time.Millisecond))
		began := time.Now()
		s.Restart(true)
		down := time.Since(began)
		if down > length/2 {
			clienttest.MoreAttempts(t, &slow, rounds, "the restart took %v", down)
			releaseAnyway(t, leases)
			leases = clienttest.GrabMany(t, c, "restarted", 20, holdfast.Renewed(length))
			continue
		}
		asked := time.Now()
		l := clienttest.Grab(t, c.Mutex("after"))
		outages.Add(down)
		next.Add(time.Since(asked))
		clienttest.GiveBack(t, l)
		for name, l := range leases {
			if err := l.Extend(clienttest.Generous(t), length); err != nil { // asks Redis
				t.Errorf("%s after the restart: %v", name, err)
			}
		}
	}
	time.Sleep(length + length/3)
	for name, l := range leases {
		clienttest.StillHeld(t, s.Admin(), name, l)
	}
	clienttest.GiveBackAll(t, leases)
	clienttest.Figure(t, "restart with data, out of reach for %v: next grant after it %v; 20 of 20 holds of %v kept", &outages, &next, length)
}

func TestRestartEmpty(t *testing.T) {
	t.Parallel()
	const length = 1500 * time.Millisecond
	s := redistest.Server(t)
	clienttest.LeaveNothing(t, s.Admin())
	p := redistest.FeelPulse(t)
	c := clienttest.OpenClient(t, s.Client(t))
	var took clienttest.Spread
	for round := range redistest.Count(t, 20) {
		leases := clienttest.GrabMany(t, c, "forgotten", 20, holdfast.Renewed(length))
		time.Sleep(clienttest.UpTo(length))
		s.Restart(false)
		// A new holder that was granted the lock meanwhile must not be disturbed.
		other := clienttest.OpenClient(t, s.Client(t))
		next := clienttest.Grab(t, other.Mutex("forgotten0"))
		if old := leases["forgotten0"].Token(); next.Token() <= old {
			t.Errorf("round %d: token %d after %d", round, next.Token(), old)
		}
		answering := time.Now()
		for _, l := range leases {
			told := clienttest.LostBy(t, p, l, answering.Add(length/3+100*time.Millisecond))
			took.Add(told.Sub(answering))
			if err := l.Release(t.Context()); !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("Release = %v, want ErrLost", err)
			}
		}
		clienttest.StillHeld(t, s.Admin(), "forgotten0", next)
		clienttest.GiveBack(t, next)
		_ = other.Close()
	}
	clienttest.Figure(t, "restart without data: told of the loss after %v (a third of the lease is 500 ms)", &took)
}
