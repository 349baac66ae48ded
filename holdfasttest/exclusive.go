// CheckExclusive: is a critical section safe when its lock is lost under it?

package holdfasttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Section describes a critical section, that is, work under a lock. CheckExclusive checks the section.
type Section struct {
	// Lock returns the lock under which Work runs. CheckExclusive calls Lock with the Client of each
	// process. The lock must admit one holder at a time. So if the lock is a semaphore, the semaphore
	// must have one permit. Permits have no tokens, so with a semaphore CheckExclusive does not compare
	// the tokens of writes.
	Lock func(c *holdfast.Client) holdfast.Locker
	// Work is the critical section itself. CheckExclusive calls Work with the lease and with the lease's
	// context. Work must call p.Pause at each point at which a process may be suspended. Work must call
	// p.Wrote after each write that the resource has accepted.
	Work func(ctx context.Context, l *holdfast.Lease, p *Probe) error
	// Owners is how many processes compete for the lock. The default is 4.
	Owners int
	// Runs is how many times each process takes the lock. The default is 25.
	Runs int
	// Seed makes CheckExclusive repeat the pauses and losses of an earlier run with the same Seed. The
	// default is a random Seed. If the test fails, its message names the Seed.
	Seed uint64
}

// deaf is how long a section may go on after its context has ended before CheckExclusive fails the test.
const deaf = 5 * time.Second

// CheckExclusive runs a critical section in several processes, with pauses, lost locks, lost replies and
// outages. The test fails if
//
//   - two sections ran at the same time, and the leases of both went on;
//   - the resource accepted a write whose token is smaller than the token of an earlier write. In that
//     case the fence, or a check of the context, has let a former holder write;
//   - a section went on for 5 s after its context had ended. The time that the section spent in Pause
//     does not count.
//
// The test also fails if Work returns an error before its context has ended. Call CheckExclusive inside
// a synctest bubble, because its pauses are up to two leases long, and take no real time in a bubble.
func (s *Server) CheckExclusive(section Section) {
	s.t.Helper()
	if section.Owners == 0 {
		section.Owners = 4
	}
	if section.Runs == 0 {
		section.Runs = 25
	}
	if section.Seed == 0 {
		section.Seed = rand.Uint64()
	}
	c := &check{server: s, section: section, random: rand.New(rand.NewPCG(section.Seed, 0))}
	var owners sync.WaitGroup
	for range section.Owners {
		way := s.network.join(s.mini.Proxy())
		client := s.process(way, holdfast.WithDefaults(holdfast.Renewed(lease)))
		owners.Go(func() {
			for range section.Runs {
				c.run(client, way)
			}
		})
	}
	owners.Wait()
	for _, finding := range c.findings {
		s.t.Errorf("holdfasttest: %s (Seed: %d)", finding, section.Seed)
	}
}

// lease is how long the leases last under CheckExclusive.
const lease = 3 * time.Second

// check is one call of CheckExclusive.
type check struct {
	server  *Server
	section Section

	mu       sync.Mutex // guards what follows
	random   *rand.Rand
	inside   []*Probe // the sections that run
	newest   int64    // the greatest token of an accepted write
	findings []string
}

// Probe is the value that CheckExclusive gives to the Work of a Section. Work calls the methods Pause
// and Wrote of the Probe.
type Probe struct {
	check  *check
	lease  *holdfast.Lease
	way    *redistest.FaultProxy // of the process
	losing bool                  // its lease is being taken away; guarded by the check's mutex
	pauses pauses
}

// pauses are the times that a section has spent in Pause, where it cannot notice that its context
// has ended.
type pauses struct {
	mu    sync.Mutex
	past  time.Duration
	since time.Time // when the present one began; zero: there is none
}

// begin notes that a pause begins; end, that it is over.
func (p *pauses) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Now()
}

func (p *pauses) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past += time.Since(p.since)
	p.since = time.Time{}
}

func (p *pauses) sum() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return p.past
	}
	return p.past + time.Since(p.since)
}

// run takes the lock once, and runs the section.
func (c *check) run(client *holdfast.Client, way *redistest.FaultProxy) {
	l, err := c.section.Lock(client).Lock(context.Background())
	if err != nil {
		c.find("the lock: %v", err)
		return
	}
	p := &Probe{check: c, lease: l, way: way}
	c.enter(p)
	stop := c.listen(p)
	ctx := l.Context(context.Background())
	err = c.section.Work(ctx, l, p)
	stop()
	c.leave(p)
	if err != nil && ctx.Err() == nil {
		c.find("the section: %v", err)
	}
	if err := l.Release(context.Background()); err != nil && !expected(err) {
		c.find("the release: %v", err)
	}
}

// expected reports whether a release may end with that error, since pauses, losses and outages do that.
func expected(err error) bool {
	for _, kind := range []error{holdfast.ErrLost, holdfast.ErrMaxHold, holdfast.ErrSuperseded, holdfast.ErrUnavailable} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// enter notes that a section begins. Two whose leases go on must not run at once.
func (c *check) enter(p *Probe) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.inside {
		if other.lives() && p.lives() {
			c.findings = append(c.findings, fmt.Sprintf("two sections at once, with the tokens %d and %d", other.lease.Token(), p.lease.Token()))
		}
	}
	c.inside = append(c.inside, p)
}

// lives reports whether the lease goes on. The caller holds the check's mutex.
func (p *Probe) lives() bool {
	return !p.losing && p.lease.Err() == nil && time.Now().Before(p.lease.Deadline())
}

func (c *check) leave(p *Probe) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.inside {
		if other == p {
			c.inside = append(c.inside[:i], c.inside[i+1:]...)
			return
		}
	}
}

// listen fails the test if the section goes on for too long after its lease has ended. stop ends
// the watch.
func (c *check) listen(p *Probe) (stop func()) {
	left := make(chan struct{})
	var listener sync.WaitGroup
	listener.Go(func() {
		select {
		case <-left:
			return
		case <-p.lease.Done():
		}
		ended, paused := time.Now(), p.pauses.sum()
		for {
			goesOn := time.Since(ended) - (p.pauses.sum() - paused)
			if goesOn >= deaf {
				c.find("a section goes on for %v after its lock was lost", deaf)
				return
			}
			timer := time.NewTimer(deaf - goesOn)
			select {
			case <-left:
				timer.Stop()
				return
			case <-timer.C:
			}
		}
	})
	return func() {
		close(left)
		listener.Wait()
	}
}

func (c *check) find(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.findings = append(c.findings, fmt.Sprintf(format, args...))
}

func (c *check) dice(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

// Pause stands for a point at which a process may be suspended. It may suspend the process for so long
// that the lock is lost and granted to another process. It may inject another fault, or only sleep for
// some milliseconds. Pause returns when the process goes on.
func (p *Probe) Pause() {
	c := p.check
	p.pauses.begin()
	defer p.pauses.end()
	switch c.dice(8) {
	case 0:
		p.lose()
	case 1:
		p.standStill(time.Duration(c.dice(int(2*lease/time.Microsecond))) * time.Microsecond)
	case 2:
		c.server.LoseReplies(1)
	case 3:
		c.server.Down()
		time.Sleep(time.Duration(c.dice(int(lease/time.Microsecond))) * time.Microsecond)
		c.server.Up()
	default:
		time.Sleep(time.Duration(c.dice(20)) * time.Millisecond)
	}
}

// lose takes the lock away, and the holder hears of it.
func (p *Probe) lose() {
	if p.lease.Err() != nil {
		return // another may hold it by now
	}
	p.check.mu.Lock()
	p.losing = true
	p.check.mu.Unlock()
	_ = p.check.server.lose(p.lease) // unless it has ended already
}

// standStill suspends the process for d: it renews nothing meanwhile.
func (p *Probe) standStill(d time.Duration) {
	p.way.Refuse(true)
	p.way.BlackHole()
	time.Sleep(d)
	p.way.Cut()
	p.way.Refuse(false)
}

// Wrote reports to CheckExclusive that the resource has just accepted a write of this section.
func (p *Probe) Wrote() {
	c, token := p.check, p.lease.Token()
	c.mu.Lock()
	defer c.mu.Unlock()
	if token < c.newest {
		c.findings = append(c.findings, fmt.Sprintf("a write with the token %d was accepted after one with %d", token, c.newest))
	}
	c.newest = max(c.newest, token)
}
