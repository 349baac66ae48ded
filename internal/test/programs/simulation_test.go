// The simulation plays random faults on random schedules, on virtual time. Whatever the network
// does, no two holders overlap, tokens grow, and nothing is left. While the network does nothing
// wrong, no waiter waits beside a free lock:
// go test -run TestSimulation -seeds 10000 ./internal/test/programs

package programs

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

var (
	seed  = flag.Uint64("seed", 0, "run the simulation of this seed only")
	seeds = flag.Int("seeds", 0, "run so many simulations; 0: 500, or a part of them")
)

func TestSimulation(t *testing.T) {
	if *seed != 0 {
		world.Play(t, func(t *testing.T, w *world.World) { simulate(t, w, *seed) })
		return
	}
	count := *seeds
	if count == 0 {
		count = redistest.CountOfWork(t, 500)
	}
	for n := range uint64(count) {
		t.Run(fmt.Sprint("seed ", n+1), func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) { simulate(t, w, n+1) })
		})
	}
}

// simulated is a kind of lock that the simulation can play with.
type simulated struct {
	name   string
	locker func(p *world.Process, o ...holdfast.LeaseOption) holdfast.Locker
	reader func(p *world.Process, o ...holdfast.LeaseOption) holdfast.Locker // nil: there are none
}

var simulatedKinds = []simulated{
	{"mutex", func(p *world.Process, o ...holdfast.LeaseOption) holdfast.Locker { return p.Mutex(world.Name, o...) }, nil},
	{"mutex without cohorts", func(p *world.Process, o ...holdfast.LeaseOption) holdfast.Locker {
		return p.Mutex(world.Name, append(o, holdfast.Cohort(0, 0))...)
	}, nil},
	{"fair", func(p *world.Process, o ...holdfast.LeaseOption) holdfast.Locker {
		return p.FairMutex(world.Name, o...)
	}, nil},
	{"read-write", func(p *world.Process, o ...holdfast.LeaseOption) holdfast.Locker { return p.RWMutex(world.Name, o...) },
		func(p *world.Process, o ...holdfast.LeaseOption) holdfast.Locker {
			return p.RWMutex(world.Name, o...).RLocker()
		}},
}

// simulation is one simulation under way: some processes with some workers each, and all workers
// want one lock. The simulation plays in scenes. Each scene has a weather of its own, and all is
// quiet between two scenes.
type simulation struct {
	*dice
	t    *testing.T
	w    *world.World
	kind simulated

	mu     sync.Mutex
	sky    weather
	over   time.Duration // when the scene's workers stop
	felt   time.Duration // until then the process may feel a fault of the network
	inside map[*holdfast.Lease]bool
	writer *holdfast.Lease // the last lease that held the lock alone
	freed  time.Duration   // when the last holder left, so that the lock was free
	grants int
}

// weather is what the network of a scene is like.
type weather struct {
	lag    time.Duration  // the longest time that a request or a reply takes
	faults int            // one request in so many meets a fault; 0: none does
	slow   bool           // the faults are all delays
	deaf   *world.Process // no reply of a script reaches this process
	pace   time.Duration  // the longest time for which a worker holds the lock, or leaves it alone
	wait   time.Duration  // the longest time for which a worker waits for the lock
}

const (
	// afterStorm is how long a fault may be felt after its request has ended. In that time the
	// client cleans up what the request may have left, at the latest when the request cannot be
	// executed any more.
	afterStorm = 3 * time.Second
	// unqueued is how long after such a fault the queue may keep a place without a waiter.
	unqueued = 1500 * time.Millisecond
	// longestSimulated is the length of the longest lease.
	longestSimulated = 2 * time.Second
	// silent is how long the client may use a connection on which nothing arrives any more. The
	// client gives up a request after its read timeout of 3 s, even a request that it sent just
	// before it gave up the connection. On a subscription the client asks for a sign of life.
	silent = 12 * time.Second
	// givenUp is how long a request may hold the lock after its caller left while the request was
	// on its way. For a second Redis may still execute the request, and then the client undoes it.
	givenUp = 1100 * time.Millisecond
	// promptly is how long a waiter may wait for a free lock while nothing lags. In 3 ms of that
	// time the lock is left to Redisson's threads. While requests and messages lag, a hand-over may
	// take as many lags more as requests and messages follow each other in it.
	promptly, lagsOfAHandOver = 100 * time.Millisecond, 10
)

func simulate(t *testing.T, w *world.World, seed uint64) {
	s := &simulation{dice: newDice(seed), t: t, w: w, inside: make(map[*holdfast.Lease]bool)}
	s.kind = simulatedKinds[s.intn(len(simulatedKinds))]
	for range 1 + s.intn(3) {
		p := w.Process()
		p.Net.OnCommand(func(c redistest.Command) redistest.Fault { return s.meets(p, c) })
	}
	for range 10 {
		s.scene()
	}
	time.Sleep(2 * time.Second)
	w.WantFree()
	if s.grants == 0 {
		t.Error("nothing was ever granted")
	}
	if t.Failed() {
		t.Logf("a %s; again with: -run TestSimulation -seed %d", s.kind.name, seed)
	}
}

// scene lets all workers play for some time, and waits until what they have left behind is cleaned
// up.
func (s *simulation) scene() {
	sky := weather{
		lag:  []time.Duration{0, 0, 3 * time.Millisecond, 50 * time.Millisecond}[s.intn(4)],
		pace: []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 400 * time.Millisecond}[s.intn(3)],
		wait: []time.Duration{200 * time.Millisecond, 3 * time.Second, time.Minute}[s.intn(3)],
	}
	if !s.one(3) { // else the network is calm
		sky.faults, sky.slow = []int{3, 10, 30}[s.intn(3)], s.one(3)
	}
	s.mu.Lock()
	s.sky, s.over = sky, s.w.Now()+s.between(100*time.Millisecond, 2*time.Second)
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range s.w.Processes {
		for range 1 + s.intn(4) {
			all.Go(func() {
				for s.w.Now() < s.over {
					s.round(p)
				}
			})
		}
	}
	if sky.faults > 0 {
		all.Go(s.mishaps)
	}
	all.Wait()
	s.mu.Lock()
	s.sky = weather{}
	clean := s.felt - afterStorm + unqueued
	s.mu.Unlock()
	time.Sleep(max(givenUp, clean-s.w.Now()))
	synctest.Wait()
	for _, key := range s.w.Mini.Keys() {
		if queued, err := s.w.Mini.ZMembers(key); err == nil && !strings.HasPrefix(key, world.AllTokens) {
			s.t.Errorf("at %v: nobody waits any more, and in the queue %s are %q", s.w.Now(), key, queued)
		}
	}
}

// mishaps lets a process lose its connections, or its hearing, now and then.
func (s *simulation) mishaps() {
	for s.w.Now() < s.over {
		time.Sleep(s.between(0, 500*time.Millisecond))
		p := s.w.Processes[s.intn(len(s.w.Processes))]
		if s.one(3) {
			s.feel(0)
			p.HangUp()
			continue
		}
		lasts := s.between(0, 2*time.Second)
		s.feel(lasts)
		s.deafen(p)
		if s.one(2) {
			p.Mute()
		}
		time.Sleep(lasts)
		p.Unmute()
		s.deafen(nil)
	}
}

// deafen lets no reply of a script reach the process. With nil, replies reach all processes again.
func (s *simulation) deafen(p *world.Process) {
	s.feel(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sky.deaf = p
}

// feel notes that something is wrong with the network for d.
func (s *simulation) feel(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.felt = max(s.felt, s.w.Now()+d+afterStorm)
}

// meets decides what happens to a command.
func (s *simulation) meets(p *world.Process, c redistest.Command) redistest.Fault {
	s.mu.Lock()
	sky := s.sky
	s.mu.Unlock()
	if c.Name != "EVALSHA" && c.Name != "SUBSCRIBE" {
		return redistest.Pass
	}
	if p == sky.deaf && c.Name == "EVALSHA" {
		s.feel(0)
		if s.one(4) {
			return redistest.CloseAfterExec
		}
		return redistest.ReplyError("ERR max number of clients reached")
	}
	if sky.faults == 0 || !s.one(sky.faults) {
		return s.lag(sky.lag)
	}
	if !sky.slow && s.one(4) {
		return s.orphan(p)
	}
	fault, lasts := s.fault(sky.slow)
	s.feel(lasts)
	return fault
}

// orphan delays a request. Meanwhile the request's process loses its connections and sends the
// request again.
func (s *simulation) orphan(p *world.Process) redistest.Fault {
	const latest = 900 * time.Millisecond
	s.feel(latest)
	time.AfterFunc(s.between(0, 20*time.Millisecond), p.HangUp)
	return redistest.Delay(s.between(0, latest))
}

// lag lets a command, or its reply, take some time.
func (s *simulation) lag(most time.Duration) redistest.Fault {
	if most == 0 {
		return redistest.Pass
	}
	return s.late(most)
}

// A worker calls enter as soon as it has been granted the lock.
func (s *simulation) enter(l *holdfast.Lease, began time.Duration, alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants++
	s.prompt(began)
	if l.Err() != nil {
		return // the lease was lost before the work began
	}
	for other := range s.inside {
		if other.Err() == nil && other.Owner() != l.Owner() && (alone || other == s.writer) {
			s.t.Errorf("at %v: %v is granted, and %v has not ended", s.w.Now(), l.Owner(), other.Owner())
		}
	}
	if alone {
		if s.writer != nil && s.writer.Owner() != l.Owner() && l.Token() <= s.writer.Token() {
			s.t.Errorf("at %v: token %d after %d", s.w.Now(), l.Token(), s.writer.Token())
		}
		s.writer = l
	}
	s.inside[l] = true
}

// A worker calls leave when its release has returned.
func (s *simulation) leave(l *holdfast.Lease, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inside, l)
	free := s.w.Now()
	if err != nil {
		free += longestSimulated // the rest of the lease runs out
	}
	s.freed = max(s.freed, free)
}

// prompt fails the test if a worker that has waited since began has waited beside a free lock while
// all was well.
func (s *simulation) prompt(began time.Duration) {
	if idle := s.w.Now() - max(began, s.freed, s.felt); idle > promptly+lagsOfAHandOver*s.sky.lag && len(s.inside) == 0 {
		s.t.Errorf("at %v: the lock was free for %v, and waited for since %v", s.w.Now(), idle, began)
	}
}

// round waits for the lock for some time and holds it for some time. Now and then it re-enters the
// lock. Then it releases the lock or lets the lease run out.
func (s *simulation) round(p *world.Process) {
	option := holdfast.Renewed(s.between(150*time.Millisecond, longestSimulated))
	if s.one(3) {
		option = holdfast.Fixed(s.between(100*time.Millisecond, time.Second))
	}
	alone := s.kind.reader == nil || s.one(3)
	m := s.kind.locker(p, option)
	if !alone {
		m = s.kind.reader(p, option)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.between(time.Millisecond, s.sky.wait))
	defer cancel()
	lock := m.Lock
	if s.one(4) {
		lock = m.TryLock
	}
	began := s.w.Now()
	l, err := lock(ctx)
	if err != nil {
		s.refused(began, err)
		time.Sleep(s.between(0, 20*time.Millisecond))
		return
	}
	s.enter(l, began, alone)
	s.hold(m, l)
	if s.one(6) {
		cancel() // as a deferred release may find its context
	}
	err = l.Release(ctx)
	s.leave(l, err)
	if err != nil && !errors.Is(err, holdfast.ErrLost) && !errors.Is(err, context.DeadlineExceeded) {
		s.t.Errorf("release: %v", err)
	}
	if s.one(3) {
		time.Sleep(s.between(0, s.sky.pace))
	}
}

// refused checks the error of a Lock or TryLock that was not granted.
func (s *simulation) refused(began time.Duration, err error) {
	if !errors.Is(err, holdfast.ErrBusy) && !errors.Is(err, holdfast.ErrUnavailable) &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, holdfast.ErrLost) {
		s.t.Errorf("lock: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompt(began)
	if s.sky.lag > 0 && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		s.freed = max(s.freed, s.w.Now()+givenUp)
	}
}

// hold does the work under the lock.
func (s *simulation) hold(m lease.Locker, l *holdfast.Lease) {
	held := l.Context(context.Background())
	pause := func() {
		if s.one(3) {
			return
		}
		select {
		case <-time.After(s.between(0, s.sky.pace)):
		case <-held.Done():
		}
	}
	pause()
	if s.one(3) {
		ctx, cancel := context.WithTimeout(held, s.between(time.Millisecond, time.Second))
		defer cancel()
		inner, err := m.Lock(ctx)
		if err == nil {
			pause()
			if err = inner.Release(ctx); err != nil && !errors.Is(err, holdfast.ErrLost) && !errors.Is(err, context.DeadlineExceeded) {
				s.t.Errorf("inner release: %v", err)
			}
		} else if held.Err() == nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, holdfast.ErrLost) {
			s.t.Errorf("nested: %v", err)
		}
		pause()
	}
}

// dice makes decisions from a seed. Goroutines of one instant may throw the dice in any order. So a
// seed makes the same schedule likely, but not certain.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{rng: rand.New(rand.NewPCG(seed, 0))} }

func (d *dice) intn(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// one is true once in n.
func (d *dice) one(n int) bool { return d.intn(n) == 0 }

func (d *dice) between(least, most time.Duration) time.Duration {
	return least + time.Duration(d.intn(int(most-least)+1))
}

// late lets a command, or its reply, take some time.
func (d *dice) late(most time.Duration) redistest.Fault {
	by := d.between(0, most)
	if d.one(2) {
		return redistest.Delay(by)
	}
	held := make(chan struct{})
	time.AfterFunc(by, func() { close(held) })
	return redistest.HoldReply(held)
}

// fault draws the fault that one request meets, and returns for how long that fault lasts.
func (d *dice) fault(slow bool) (redistest.Fault, time.Duration) {
	const latest = 2500 * time.Millisecond
	if slow {
		return d.late(latest), latest
	}
	switch d.intn(8) {
	case 0, 1:
		return redistest.CloseAfterExec, 0
	case 2:
		return redistest.Silence, silent
	case 3:
		return redistest.DropBefore, 0
	case 4:
		return redistest.HalfReply, 0
	case 5:
		return redistest.Duplicate, 0
	case 6:
		return redistest.ReplyError("LOADING Redis is loading the dataset in memory"), 0
	default:
		return d.late(latest), latest
	}
}
