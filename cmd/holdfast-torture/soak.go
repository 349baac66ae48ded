// A run, from its beginning to its end.

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// soak is one run.
type soak struct {
	t        testing.TB
	config   config
	topology topology
	referee  *referee
	crew     *crew
	lookout  *lookout
	log      *log
	commit   string // the commit of the code, if it is known

	began, ended time.Time
	warm         tally         // the numbers before the first fault
	warming      time.Duration // and how long that took
	warmed       time.Time     // when the first fault could come
}

const (
	// warmUp is how much longer than a lease contenders run before the first fault: they must
	// be at work, and their holds must have been renewed.
	warmUp = 2 * time.Second
	// startUp is how long they may take until the first grant.
	startUp = 30 * time.Second
)

// run runs a soak and returns its report. If the harness itself fails, t fails.
func run(t testing.TB, c config) *report {
	s := &soak{t: t, config: c, log: newLog(), commit: commit()}
	ground := grounds[c.Ground]
	s.topology = newTopology(t, c, ground.prepare(t))
	ground.populate(t, s.topology.onlookers())
	s.referee = newReferee(t)
	s.began = time.Now()
	s.crew = newCrew(t, c.Processes, orders{
		Seed: c.Seed, Kinds: c.Kinds, Lease: c.Lease, Width: c.Width, Replicas: c.Replicas,
		Referee: s.referee.addr(), Processes: c.Processes, Topology: c.Topology, Ground: ground,
		Addrs: s.topology.addrs(), Routes: s.topology.network().routes,
	}, s.log)
	looking, enough := context.WithCancel(context.Background())
	s.lookout = newLookout(looking, t, c, s.topology.nodes())
	s.contend()
	problems := s.crew.dismiss()
	s.ended = time.Now()
	enough()
	s.lookout.running.Wait()
	s.referee.close()
	problems = append(problems, s.counts()...)
	s.leftBehind()
	return s.judge(problems)
}

// contend lets the contenders run, and after a while the faults, until that is enough.
func (s *soak) contend() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	began := s.began
	s.watch(ctx, func() bool {
		if s.referee.tally().grants == 0 && time.Since(s.began) < startUp {
			began = time.Now()
		}
		return time.Since(began) > s.config.Lease+warmUp
	})
	s.warmed = time.Now()
	s.warm, s.warming = s.referee.tally(), s.warmed.Sub(began)

	faulty, stopFaults := context.WithCancel(ctx)
	over := s.startFaults(faulty)
	s.watch(ctx, s.enough)
	stopFaults()
	over()
	// Holds that were left run out, and free objects are taken.
	quiet := time.Now().Add(s.config.Lease)
	s.watch(ctx, func() bool { return time.Now().After(quiet) })
}

// enough reports whether the run may end.
func (s *soak) enough() bool {
	faults, _ := s.log.state()
	return time.Since(s.began) > s.config.For && s.referee.tally().grants >= s.config.Grants && faults >= s.config.Count
}

// watch returns when done reports true, or the run has failed, takes too long or is
// interrupted. It shows the progress. It also checks that the machine's clock is not set,
// because claims are compared by it.
func (s *soak) watch(ctx context.Context, done func() bool) {
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	last := bothClocks()
	for n := 1; !done() && !s.t.Failed(); n++ {
		select {
		case <-every.C:
		case <-ctx.Done():
			s.t.Errorf("interrupted")
		}
		now := bothClocks()
		if set := clockSet(last, now); set.Abs() > 5*time.Millisecond {
			s.t.Errorf("the machine's clock was set by %v meanwhile", set)
		}
		last = now
		if time.Since(s.began) > s.config.Limit {
			s.t.Errorf("not enough grants or faults after %v", s.config.Limit)
		}
		if n%20 == 0 {
			s.progress()
		}
	}
}

// bothClocks returns a time whose two readings, of the wall clock and of the monotonic one, are of
// the same moment. time.Now reads one after the other, and a busy machine may stop the process in
// between. So two times must agree.
func bothClocks() time.Time {
	for last := time.Now(); ; {
		now := time.Now()
		if clockSet(last, now).Abs() < time.Millisecond {
			return now
		}
		last = now
	}
}

// clockSet returns by how much the wall clock was set between two times, forwards if positive.
func clockSet(from, to time.Time) time.Duration {
	return to.Round(0).Sub(from.Round(0)) - to.Sub(from)
}

func (s *soak) progress() {
	if s.config.Quiet {
		return
	}
	t := s.referee.tally()
	faults, last := s.log.state()
	took := time.Since(s.began)
	fmt.Fprintf(os.Stderr, "%5.0f s  %s seed %d  %8d grants (%4.0f/s)  %5d faults  %d stale  %d fenced  %d lost  last: %s\n",
		took.Seconds(), s.config.Topology, s.config.Seed, t.grants, float64(t.grants)/took.Seconds(), faults, t.stale, t.fenced, t.lost, last)
}

// counts compares the number of free permits, when no lane has any, with the number that was
// set. For a semaphore without leases that is exact in its last epoch.
func (s *soak) counts() []string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var problems []string
	for _, kind := range s.config.Kinds {
		for n := range s.config.names() {
			name := fmt.Sprintf("%s-%d", kind, n)
			var available func(c *holdfast.Client) (int, error)
			switch kind {
			case "permits":
				available = func(c *holdfast.Client) (int, error) { return c.PermitSemaphore(name).Available(ctx) }
			case "sem":
				name = fmt.Sprintf("%s.%d", name, s.crew.epoch)
				available = func(c *holdfast.Client) (int, error) { return c.Semaphore(name).Available(ctx) }
			default:
				continue
			}
			if s.referee.object(name).untouched() {
				continue // not used, so not set
			}
			if err := s.all(available); err != nil {
				problems = append(problems, fmt.Sprintf("%s: %v", name, err))
			}
		}
	}
	return problems
}

// all waits until all permits are free: those of killed contenders run out, and takes that were
// not answered are undone.
func (s *soak) all(available func(c *holdfast.Client) (int, error)) error {
	client := holdfast.New(s.topology.onlookers()[0])
	defer client.Close()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		n, err := available(client)
		switch {
		case err == nil && n == permits:
			return nil
		case time.Now().Before(until):
		case err != nil:
			return err
		default:
			return fmt.Errorf("%d of %d permits are free when nobody has any", n, permits)
		}
	}
}

// keeps are the prefixes of the keys that may stay, or that no lane could remove: tokens,
// records of calls, permits and latches that are set, permits of dead processes.
var keeps = []string{
	"redisson_lock_token:", "holdfast_", "permits-", "{permits-", "sem-", "latch-", strangers,
}

// leftBehind fails the test if anything else is left.
func (s *soak) leftBehind() {
	for _, p := range s.topology.network().proxies {
		p.Cut() // a connection in a black hole does not learn that its contender has gone
	}
	for _, rdb := range s.topology.onlookers() {
		s.placesLeft(rdb)
		redistest.LeftBehind(s.t, rdb, keeps...)
	}
}
