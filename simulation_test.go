// Random faults on random schedules, on virtual time: whatever the network does, two
// never hold at once, tokens grow, and nothing is left; and where it does nothing,
// nobody waits beside a free lock.
// go test -run TestSimulation -seeds 10000 .

package holdfast_test

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
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

var (
	seed  = flag.Uint64("seed", 0, "run the simulation of this seed only")
	seeds = flag.Int("seeds", 0, "run so many simulations; 0: 500, or a part of them")
)

func TestSimulation(t *testing.T) {
	if *seed != 0 {
		play(t, func(t *testing.T, w *world) { simulate(t, w, *seed) })
		return
	}
	count := *seeds
	if count == 0 {
		count = redistest.CountOfWork(t, 500)
	}
	for n := range uint64(count) {
		t.Run(fmt.Sprint("seed ", n+1), func(t *testing.T) {
			play(t, func(t *testing.T, w *world) { simulate(t, w, n+1) })
		})
	}
}

// simulated is a kind of lock that is simulated.
type simulated struct {
	name   string
	locker func(p *process, o ...holdfast.LeaseOption) holdfast.Locker
	reader func(p *process, o ...holdfast.LeaseOption) holdfast.Locker // nil: there are none
}

var simulatedKinds = []simulated{
	{"mutex", func(p *process, o ...holdfast.LeaseOption) holdfast.Locker { return p.Mutex(name, o...) }, nil},
	{"mutex without cohorts", func(p *process, o ...holdfast.LeaseOption) holdfast.Locker {
		return p.Mutex(name, append(o, holdfast.Cohort(0, 0))...)
	}, nil},
	{"fair", func(p *process, o ...holdfast.LeaseOption) holdfast.Locker { return p.FairMutex(name, o...) }, nil},
	{"read-write", func(p *process, o ...holdfast.LeaseOption) holdfast.Locker { return p.RWMutex(name, o...) },
		func(p *process, o ...holdfast.LeaseOption) holdfast.Locker { return p.RWMutex(name, o...).RLocker() }},
}

// simulation is one under way: some processes of some workers, who all want one lock. It
// is played in scenes, each with a weather of its own, between which all is quiet.
type simulation struct {
	*dice
	t    *testing.T
	w    *world
	kind simulated

	mu     sync.Mutex
	sky    weather
	over   time.Duration // when the scene's workers stop
	felt   time.Duration // until then something that was wrong with the network may be felt
	inside map[*holdfast.Lease]bool
	writer *holdfast.Lease // the last that held the lock alone
	freed  time.Duration   // when the last of them left, so that the lock was free
	grants int
}

// weather is what the network of a scene is like.
type weather struct {
	lag    time.Duration // a request, or a reply, takes at most so long
	faults int           // one request in so many meets one; 0: none does
	slow   bool          // the faults are all delays
	deaf   *process      // no answer reaches this process
	pace   time.Duration // how long the lock is held, at the most, and left alone
	wait   time.Duration // how long it is waited for, at the most
}

const (
	// afterStorm is for how long a fault may be felt when its request is not under way any
	// more: what it may have left is cleaned up, at the latest when it cannot be executed.
	afterStorm = 3 * time.Second
	// unqueued is how long after such a fault the queue has nobody left who is not there.
	unqueued = 1500 * time.Millisecond
	// longestSimulated is the longest lease.
	longestSimulated = 2 * time.Second
	// silent is how long a connection may be in use that nothing comes on any more: a request
	// is given up after the client's read timeout of 3 s, also one that was sent just
	// before the connection was given up; a subscription is asked for a sign of life.
	silent = 12 * time.Second
	// givenUp is how long a request may hold the lock that was still on its way when its
	// caller left: for a second it may be executed, and then it is undone.
	givenUp = 1100 * time.Millisecond
	// promptly is how long a free lock may be waited for where nothing lags: Redisson's
	// threads have 3 ms of it. Where something does, a hand-over may take as many lags more
	// as requests and messages follow each other in it.
	promptly, lagsOfAHandOver = 100 * time.Millisecond, 10
)

func simulate(t *testing.T, w *world, seed uint64) {
	s := &simulation{dice: newDice(seed), t: t, w: w, inside: make(map[*holdfast.Lease]bool)}
	s.kind = simulatedKinds[s.intn(len(simulatedKinds))]
	for range 1 + s.intn(3) {
		p := w.process()
		p.net.OnCommand(func(c redistest.Command) redistest.Fault { return s.meets(p, c) })
	}
	for range 10 {
		s.scene()
	}
	time.Sleep(2 * time.Second)
	w.wantFree()
	if s.grants == 0 {
		t.Error("nothing was ever granted")
	}
	if t.Failed() {
		t.Logf("a %s; again with: -run TestSimulation -seed %d", s.kind.name, seed)
	}
}

// scene has all workers play for some time, and waits until what they have left behind is
// cleaned up.
func (s *simulation) scene() {
	sky := weather{
		lag:  []time.Duration{0, 0, 3 * time.Millisecond, 50 * time.Millisecond}[s.intn(4)],
		pace: []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 400 * time.Millisecond}[s.intn(3)],
		wait: []time.Duration{200 * time.Millisecond, 3 * time.Second, time.Minute}[s.intn(3)],
	}
	if !s.one(3) { // else all is calm
		sky.faults, sky.slow = []int{3, 10, 30}[s.intn(3)], s.one(3)
	}
	s.mu.Lock()
	s.sky, s.over = sky, s.w.now()+s.between(100*time.Millisecond, 2*time.Second)
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range s.w.processes {
		for range 1 + s.intn(4) {
			all.Go(func() {
				for s.w.now() < s.over {
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
	time.Sleep(max(givenUp, clean-s.w.now()))
	synctest.Wait()
	for _, key := range s.w.mini.Keys() {
		if queued, err := s.w.mini.ZMembers(key); err == nil && !strings.HasPrefix(key, allTokens) {
			s.t.Errorf("at %v: nobody waits any more, and in the queue %s are %q", s.w.now(), key, queued)
		}
	}
}

// mishaps has a process lose its connections, or its hearing, now and then.
func (s *simulation) mishaps() {
	for s.w.now() < s.over {
		time.Sleep(s.between(0, 500*time.Millisecond))
		p := s.w.processes[s.intn(len(s.w.processes))]
		if s.one(3) {
			s.feel(0)
			p.hangUp()
			continue
		}
		lasts := s.between(0, 2*time.Second)
		s.feel(lasts)
		s.deafen(p)
		if s.one(2) {
			p.mute()
		}
		time.Sleep(lasts)
		p.unmute()
		s.deafen(nil)
	}
}

// deafen has no answer of a script reach the process; nil: they all do again.
func (s *simulation) deafen(p *process) {
	s.feel(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sky.deaf = p
}

// feel notes that something is wrong with the network for d.
func (s *simulation) feel(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.felt = max(s.felt, s.w.now()+d+afterStorm)
}

// meets decides what happens to a command.
func (s *simulation) meets(p *process, c redistest.Command) redistest.Fault {
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

// orphan has a request come late whose process has lost its connections meanwhile, and
// has asked again.
func (s *simulation) orphan(p *process) redistest.Fault {
	const latest = 900 * time.Millisecond
	s.feel(latest)
	time.AfterFunc(s.between(0, 20*time.Millisecond), p.hangUp)
	return redistest.Delay(s.between(0, latest))
}

// lag has a command, or its reply, take some time.
func (s *simulation) lag(most time.Duration) redistest.Fault {
	if most == 0 {
		return redistest.Pass
	}
	return s.late(most)
}

// enter is called by a worker that has been granted the lock, at once.
func (s *simulation) enter(l *holdfast.Lease, began time.Duration, alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants++
	s.prompt(began)
	if l.Err() != nil {
		return // it was told before it began
	}
	for other := range s.inside {
		if other.Err() == nil && other.Owner() != l.Owner() && (alone || other == s.writer) {
			s.t.Errorf("at %v: %v is granted, and %v has not ended", s.w.now(), l.Owner(), other.Owner())
		}
	}
	if alone {
		if s.writer != nil && s.writer.Owner() != l.Owner() && l.Token() <= s.writer.Token() {
			s.t.Errorf("at %v: token %d after %d", s.w.now(), l.Token(), s.writer.Token())
		}
		s.writer = l
	}
	s.inside[l] = true
}

// leave is called by a worker whose release has returned.
func (s *simulation) leave(l *holdfast.Lease, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inside, l)
	free := s.w.now()
	if err != nil {
		free += longestSimulated // what is left of it runs out
	}
	s.freed = max(s.freed, free)
}

// prompt fails the test if one who has waited since began has waited beside a free lock,
// while all was well.
func (s *simulation) prompt(began time.Duration) {
	if idle := s.w.now() - max(began, s.freed, s.felt); idle > promptly+lagsOfAHandOver*s.sky.lag && len(s.inside) == 0 {
		s.t.Errorf("at %v: the lock was free for %v, and waited for since %v", s.w.now(), idle, began)
	}
}

// round waits for the lock for some time, holds it for some time, enters it again now
// and then, and releases it or lets it run out.
func (s *simulation) round(p *process) {
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
	began := s.w.now()
	l, err := lock(ctx)
	if err != nil {
		s.refused(began, err)
		time.Sleep(s.between(0, 20*time.Millisecond))
		return
	}
	s.enter(l, began, alone)
	s.hold(m, l)
	if s.one(6) {
		cancel() // as a deferred release meets it
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

// refused looks at a lock that was not granted.
func (s *simulation) refused(began time.Duration, err error) {
	if !errors.Is(err, holdfast.ErrBusy) && !errors.Is(err, holdfast.ErrUnavailable) &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, holdfast.ErrLost) {
		s.t.Errorf("lock: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompt(began)
	if s.sky.lag > 0 && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		s.freed = max(s.freed, s.w.now()+givenUp)
	}
}

// hold is the work under the lock.
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

// dice decides, from a seed. Goroutines of one instant may throw in any order,
// so that a seed is a schedule more likely than others, not the same one.
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

// late has a command, or its reply, take some time.
func (d *dice) late(most time.Duration) redistest.Fault {
	by := d.between(0, most)
	if d.one(2) {
		return redistest.Delay(by)
	}
	held := make(chan struct{})
	time.AfterFunc(by, func() { close(held) })
	return redistest.HoldReply(held)
}

// fault is what happens to one request that meets a fault, and for how long.
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
