// The scheduler: one goroutine that asks each task, when its time has come, what is to
// be done, and does no I/O.

package renewal

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

const (
	// Resolution is the length of one step of the wheel, and by how much a task may be
	// called before its time. It is a twentieth of MinLease, which costs a lease little
	// of its life, and long enough that leases which fall due together share a wake-up.
	Resolution = 5 * time.Millisecond

	// MinLease is the shortest lease that can be kept: renewed at a third of it, each try
	// limited to a sixth (16 ms), two tries fail before its end, and rounding and timers
	// stay an order of magnitude below.
	MinLease = 100 * time.Millisecond

	// slotCount makes a turn of 20.48 s, above the 10 s from one renewal of a lease of
	// 30 s to the next, for 33 kB.
	slotCount = 4096
)

// ErrClosed is what a renewal that was waiting to be sent fails with at Close.
var ErrClosed = errors.New("renewal: scheduler closed")

// Task is something kept alive in Redis under a lease. Its methods are called without
// any mutex of this package held, and may call Schedule and Remove, but not Close.
type Task interface {
	// Entry returns the task's place on the wheel, always the same.
	Entry() *Entry

	// Tick is called on the scheduler's goroutine when the task's time has come, and
	// must neither block nor do I/O. What is due before now is due: now is up to
	// Resolution ahead of the clock. A task whose deadline has come ends itself here.
	//
	// next is when the task is to be called again; zero is never, a time not after now
	// is the next step. renew asks that the task be handed to the Sender now. Every such
	// request is answered by exactly one Send or Fail, so a task that is waiting for that
	// answer must not ask again: it would be sent twice.
	Tick(now time.Time) (next time.Time, renew bool)

	// Suspect is called instead of Tick, before the task's time, when the wall clock ran
	// ahead of the monotonic clock: either the machine was suspended and the lease may be
	// over, or the clock was set and it is not. The contract is that of Tick.
	Suspect(now time.Time) (next time.Time, renew bool)

	// Key returns the Redis key by which the task's server is found.
	Key() string

	// Timeout returns the bound of one try to renew, a sixth of the lease. It is positive.
	Timeout() time.Duration
}

// Scheduler calls tasks when their time has come. Its goroutine starts with the first
// Schedule and ends with Close. Its methods are safe for concurrent use.
type Scheduler struct {
	epoch  time.Time // tick 0
	out    *outbox
	wake   chan struct{} // holds one signal: something is due earlier than planned
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // the scheduler's goroutine and those of the outbox

	mu      sync.Mutex // guards what follows and every Entry
	wheel   *Wheel     // nil before the first Schedule
	planned int64      // the tick at which the goroutine wakes by itself; the smallest if awake
	used    bool       // something was scheduled since the goroutine last planned
	closed  bool
}

// New returns a scheduler that renews through s. It starts nothing.
func New(s Sender) *Scheduler {
	ctx, cancel := context.WithCancelCause(context.Background())
	sched := &Scheduler{
		epoch:   time.Now(),
		wake:    make(chan struct{}, 1),
		ctx:     ctx,
		cancel:  cancel,
		planned: math.MinInt64,
	}
	sched.out = newOutbox(ctx, s, &sched.wg)
	return sched
}

// Schedule has t called at the given time, instead of any time it was to be called at
// before. The time must come from time.Now, so that it has a monotonic reading; one that
// has passed is now. It takes precedence over what a Tick that is running answers. After
// Close it does nothing.
func (s *Scheduler) Schedule(t Task, at time.Time) {
	e, tick := t.Entry(), s.tick(at)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.wheel == nil {
		s.wheel = NewWheel(slotCount, s.tick(time.Now()))
		s.wg.Go(s.run)
	}
	e.task, e.firing, s.used = t, false, true
	s.wheel.Set(e, tick)
	if tick < s.planned {
		s.planned = math.MinInt64 // one signal is enough
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Remove takes t off the wheel. Once it has returned, no Tick or Suspect of t begins
// until t is scheduled again. One that has begun may still be running; its answer does
// not put t back on the wheel. A renewal that t asked for, even in that last Tick, is
// still answered by Send or Fail: Send leaves out a task that no longer wants it.
func (s *Scheduler) Remove(t Task) {
	e := t.Entry()
	s.mu.Lock()
	defer s.mu.Unlock()
	e.firing = false
	if s.wheel != nil {
		s.wheel.Remove(e)
	}
}

// Close ends the scheduler's goroutine and the context of every Send and Node that is
// running, and returns when all of them have returned. Renewals not yet sent fail with
// ErrClosed; tasks on the wheel are not called again. It may be called more than once
// and concurrently, but not from a Task or the Sender, for which it waits.
func (s *Scheduler) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel(ErrClosed)
	s.wg.Wait()
}

// run is the scheduler's goroutine.
func (s *Scheduler) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	ready := make([]Task, 0, MaxBatch)
	for last := s.epoch; s.ctx.Err() == nil; {
		now := time.Now()
		if ranAhead(elapsed(last, now)) {
			s.recall()
		}
		last = now
		ready = s.round(now, ready)
		s.sleep(timer)
	}
}

// recall makes every task due, to be asked by Suspect.
func (s *Scheduler) recall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wheel.Recall()
}

// round calls tasks that are due, at most MaxBatch of them so that the clock is looked at
// again and the outbox has something to send while the rest is called. It returns ready,
// its buffer, for the next round.
func (s *Scheduler) round(now time.Time, ready []Task) []Task {
	ready = ready[:0]
	tick := s.tick(now)
	now = now.Add(s.start(tick + 1).Sub(now)) // moves its wall and its monotonic reading
	for range MaxBatch {
		t, suspect := s.take(tick)
		if t == nil {
			break
		}
		ask := t.Tick
		if suspect {
			ask = t.Suspect
		}
		next, renew := ask(now)
		if renew {
			ready = append(ready, t)
		}
		s.settle(t, next, tick)
	}
	s.out.submit(ready)
	clear(ready) // tasks that end are not kept alive by the buffer
	return ready
}

// take takes the next task that is due off the wheel, nil if there is none.
func (s *Scheduler) take(tick int64) (t Task, suspect bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planned = math.MinInt64 // awake: whatever is scheduled now is seen before the next sleep
	e, suspect := s.wheel.Pop(tick)
	if e == nil {
		return nil, false
	}
	e.firing = true
	return e.task, suspect
}

// settle puts t back on the wheel as it answered, unless it was removed or scheduled
// anew in the meantime.
func (s *Scheduler) settle(t Task, next time.Time, tick int64) {
	e := t.Entry()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.firing && !next.IsZero() {
		// Not this step again: a task that answers with the past must not keep the
		// goroutine from the others.
		s.wheel.Set(e, max(s.tick(next), tick+1))
	}
	e.firing = false
}

// sleep waits until the next occupied slot, until the clocks are to be compared, or until
// something is scheduled before that.
func (s *Scheduler) sleep(timer *time.Timer) {
	until, ok := s.plan()
	var timeout <-chan time.Time
	if ok {
		wait := time.Until(until)
		if wait <= 0 {
			return
		}
		timer.Reset(wait)
		timeout = timer.C
	}
	select {
	case <-timeout:
	case <-s.wake:
	case <-s.ctx.Done():
	}
}

// plan returns when to wake up, and false if there is nothing to wake up for. A wheel
// that has just become empty is looked at once more: where locks are taken and released
// one after the other, waking the goroutine for each would be a quarter of their cost.
func (s *Scheduler) plan() (until time.Time, ok bool) {
	watch := s.tick(time.Now().Add(clockWatch))
	s.mu.Lock()
	defer s.mu.Unlock()
	next, ok := s.wheel.Next()
	switch {
	case ok:
		s.planned = min(next, watch)
	case s.used:
		s.planned = watch
	default:
		s.planned = math.MaxInt64
		return time.Time{}, false
	}
	s.used = false
	return s.start(s.planned), true
}

// tick returns the step of the wheel that at falls into.
func (s *Scheduler) tick(at time.Time) int64 {
	return max(0, int64(at.Sub(s.epoch)/Resolution))
}

// start returns the time at which the step begins.
func (s *Scheduler) start(tick int64) time.Time {
	return s.epoch.Add(time.Duration(tick) * Resolution)
}
