// Redis forgets its scripts, restarts with its data, or restarts without its data.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestScriptsFlushedUnderLoad(t *testing.T) {
	s := redistest.Server(t)
	leaveNothing(t, s.Admin())
	c := openClient(t, s.Client(t))
	kept := grabMany(t, c, "kept", 20, holdfast.Renewed(time.Second))

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
	each(operations, 50, func(i int) {
		name := fmt.Sprintf("flushed%d", i%len(records))
		if err := nestedPair(t, c, s.Admin(), name, &records[i%len(records)]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	time.Sleep(time.Second) // some more renewals
	close(stop)
	wg.Wait()
	for name, l := range kept {
		stillHeld(t, s.Admin(), name, l)
	}
	giveBackAll(t, kept)
	figure(t, "scripts flushed %d times under %d calls: 0 errors", flushes, 4*operations)
}

func TestRestartWithData(t *testing.T) {
	t.Parallel()
	const length = 3 * time.Second
	s := redistest.Server(t, "--appendonly", "yes", "--appendfsync", "always")
	leaveNothing(t, s.Admin())
	c := openClient(t, s.Client(t))
	leases := grabMany(t, c, "restarted", 20, holdfast.Renewed(length))
	var outages, next spread
	rounds, slow := redistest.Count(t, 20), 0
	for len(next.all) < rounds {
		time.Sleep(upTo(300 * time.Millisecond))
		began := time.Now()
		s.Restart(true)
		down := time.Since(began)
		if down > length/2 {
			moreAttempts(t, &slow, rounds, "the restart took %v", down)
			releaseAnyway(t, leases)
			leases = grabMany(t, c, "restarted", 20, holdfast.Renewed(length))
			continue
		}
		asked := time.Now()
		l := grab(t, c.Mutex("after"))
		outages.add(down)
		next.add(time.Since(asked))
		giveBack(t, l)
		for name, l := range leases {
			if err := l.Extend(generous(t), length); err != nil { // asks Redis
				t.Errorf("%s after the restart: %v", name, err)
			}
		}
	}
	time.Sleep(length + length/3)
	for name, l := range leases {
		stillHeld(t, s.Admin(), name, l)
	}
	giveBackAll(t, leases)
	figure(t, "restart with data, out of reach for %v: next grant after it %v; 20 of 20 holds of %v kept", &outages, &next, length)
}

func TestRestartEmpty(t *testing.T) {
	t.Parallel()
	const length = 1500 * time.Millisecond
	s := redistest.Server(t)
	leaveNothing(t, s.Admin())
	p := feelPulse(t)
	c := openClient(t, s.Client(t))
	var took spread
	for round := range redistest.Count(t, 20) {
		leases := grabMany(t, c, "forgotten", 20, holdfast.Renewed(length))
		time.Sleep(upTo(length))
		s.Restart(false)
		// A new holder that was granted the lock meanwhile must not be disturbed.
		other := openClient(t, s.Client(t))
		next := grab(t, other.Mutex("forgotten0"))
		if old := leases["forgotten0"].Token(); next.Token() <= old {
			t.Errorf("round %d: token %d after %d", round, next.Token(), old)
		}
		answering := time.Now()
		for _, l := range leases {
			told := lostBy(t, p, l, answering.Add(length/3+100*time.Millisecond))
			took.add(told.Sub(answering))
			if err := l.Release(t.Context()); !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("Release = %v, want ErrLost", err)
			}
		}
		stillHeld(t, s.Admin(), "forgotten0", next)
		giveBack(t, next)
		_ = other.Close()
	}
	figure(t, "restart without data: told of the loss after %v (a third of the lease is 500 ms)", &took)
}
