// The Pulse measures how long the machine kept this process from running.

package redistest

import (
	"slices"
	"sync"
	"time"
)

// Pulse records when this process did not get the processor. A goroutine sleeps a little, over
// and over, and records when it wakes up late. On Linux a thread on each processor does the
// same, because a timer of this process may be due on any of them. A bound in real time is
// extended by what the Pulse shows, and by no more.
type Pulse struct {
	stop chan struct{}
	wg   sync.WaitGroup

	mu    sync.Mutex
	beats []*beat
}

// beat is the record of one sleeper.
type beat struct {
	gaps   []gap
	beaten time.Time // when the sleeper last woke up
}

// gap is a sleep that took too long.
type gap struct {
	end  time.Time
	late time.Duration
}

const (
	pulseBeat = 2 * time.Millisecond
	// pulseGrain is how late a sleep may be on an idle machine.
	pulseGrain = 2 * time.Millisecond
)

// StartPulse starts a Pulse, which is kept until end is called.
func StartPulse() (p *Pulse, end func()) {
	p = &Pulse{stop: make(chan struct{})}
	p.start()
	return p, func() {
		close(p.stop)
		p.wg.Wait()
	}
}

func (p *Pulse) start() {
	p.run(func(beat func()) { beat() }, time.Sleep)
	for _, cpu := range processors() {
		p.run(func(beat func()) { onProcessor(cpu, beat) }, sleepThread)
	}
}

// run starts a sleeper that records its late wake-ups until the pulse ends. where calls it.
func (p *Pulse) run(where func(beat func()), sleep func(time.Duration)) {
	b := &beat{beaten: time.Now()}
	p.beats = append(p.beats, b)
	p.wg.Go(func() {
		where(func() {
			for {
				select {
				case <-p.stop:
					return
				default:
				}
				before := time.Now()
				sleep(pulseBeat)
				p.note(b, before, time.Now())
			}
		})
	})
}

func (p *Pulse) note(b *beat, before, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.beaten = now
	if late := now.Sub(before) - pulseBeat; late > pulseGrain {
		b.gaps = append(b.gaps, gap{now, late})
	}
}

// Slack returns by how much code that ran between the two instants may be late: the grain, plus
// the longest time that one of the sleepers was late in all between them.
func (p *Pulse) Slack(from, to time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var most time.Duration
	for _, b := range p.beats {
		most = max(most, b.late(from, to))
	}
	return pulseGrain + most
}

// late returns for how long in all the sleeper did not run between the two instants.
func (b *beat) late(from, to time.Time) time.Duration {
	var all time.Duration
	if late := to.Sub(b.beaten) - pulseBeat; late > pulseGrain { // the sleep under way
		all = min(late, to.Sub(from))
	}
	for _, g := range slices.Backward(b.gaps) {
		if g.end.Before(from) {
			break
		}
		begin, end := g.end.Add(-g.late), g.end
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		all += max(0, end.Sub(begin))
	}
	return all
}
