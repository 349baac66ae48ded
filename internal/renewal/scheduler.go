// The scheduler: one goroutine that asks each task what to do when its time has come. It does
// no I/O.

package renewal

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

const (
	// Resolution is the length of one step of the wheel, and the most by which a task is called
	// before its time. It is a twentieth of MinLease, so it costs a lease little of its life,
	// and long enough that leases which fall due together share a wake-up.
	Resolution = 5 * time.Millisecond

	// MinLease is the shortest lease that can be kept. It is renewed at a third of its length,
	// and each try is limited to a sixth (16 ms). Two tries can fail before its end, and the
	// errors of rounding and of timers are an order of magnitude smaller.
	MinLease = 100 * time.Millisecond

	// slotCount makes a turn of the wheel 20.48 s long, for 33 kB. A lease of 30 s is renewed
	// every 10 s, so its next renewal is less than a turn away.
	slotCount = 4096
)

// ErrClosed is the error of a renewal that was waiting to be sent when Close was called.
var ErrClosed = errors.New("renewal: scheduler closed")

// Task is a hold in Redis that is kept alive under a lease. Its methods are called without any
// mutex of this package held. They may call Schedule and Remove, but not Close.
type Task interface {
	// Entry returns the task's place on the wheel. It always returns the same one.
	Entry() *Entry

	// Tick is called on the scheduler's goroutine when the task's time has come. It must
	// neither block nor do I/O. now is up to Resolution ahead of the clock; whatever is due
	// before now is due. A task whose deadline has come ends itself here.
	//
	// next is when the task is to be called again: the zero time means never, and a time not
	// after now means the next step. renew asks that the task be handed to the Sender now.
	// Exactly one Send or Fail answers each such request. Until that answer a task must not ask
	// again, or it would be sent twice.
	Tick(now time.Time) (next time.Time, renew bool)

	// Suspect is called instead of Tick, before the task's time, when the hold may not be there any
	// more. After Doubt the server may have forgotten it. When the wall clock has run ahead of the
	// monotonic clock, either the machine was suspended, and the lease may be over, or the clock was
	// set, and the lease is not over. The contract is that of Tick.
	Suspect(now time.Time) (next time.Time, renew bool)

	// Key returns the Redis key that determines the task's server.
	Key() string

	// Urgency returns when the task ends unless it is renewed, and how long one try to renew it may
	// take: a sixth of the lease. What ends first is sent first. The try is positive.
	Urgency() (deadline time.Time, try time.Duration)
}

// Scheduler calls tasks when their time has come. Its goroutine starts with the first Schedule,
// and ends with Close. Its methods are safe for concurrent use.
type Scheduler struct {
	epoch  time.Time // tick 0
	out    *outbox
	wake   chan struct{} // holds one signal: something is due earlier than planned
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // the scheduler's goroutine and those of the outbox

	mu      sync.Mutex // guards what follows and every Entry
	wheel   *Wheel     // nil before the first Schedule
	planned int64      // the tick at which the goroutine wakes without a signal; the smallest if awake
	used    bool       // something was scheduled since the goroutine last planned
	closed  bool
	doubts

	concerned concern // whom the last recall concerns; only the goroutine uses it
}

// New returns a scheduler that renews through s. It starts no goroutine.
func New(s Sender) *Scheduler {
	ctx, cancel := context.WithCancelCause(context.Background())
	sched := &Scheduler{
		epoch:   time.Now(),
		wake:    make(chan struct{}, 1),
		ctx:     ctx,
		cancel:  cancel,
		planned: math.MinInt64,
	}
	sched.out = newOutbox(ctx, s, sched.epoch, &sched.wg)
	return sched
}

// Schedule makes the scheduler call t at the given time, instead of any time set before. The
// time must come from time.Now, so that it has a monotonic reading; a time that has passed
// means now. Schedule takes precedence over the answer of a Tick that is running. After Close
// it does nothing.
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

// Remove takes t off the wheel. Once Remove has returned, no Tick or Suspect of t begins until
// t is scheduled again. One that has begun may still be running; its answer does not put t back
// on the wheel. A renewal that t asked for, even in that last Tick, is still answered by Send
// or Fail; Send must leave out a task that no longer wants to be renewed.
func (s *Scheduler) Remove(t Task) {
	e := t.Entry()
	s.mu.Lock()
	defer s.mu.Unlock()
	e.firing = false
	if s.wheel != nil {
		s.wheel.Remove(e)
	}
}

// Close ends the scheduler's goroutine and the context of every Send and Node that is running,
// and returns when all of them have returned. Renewals that were not yet sent fail with
// ErrClosed. Tasks on the wheel are not called again. Close may be called more than once and
// concurrently, but not from a Task or the Sender, because it waits for them.
func (s *Scheduler) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel(ErrClosed)
	s.wg.Wait()
}

func (s *Scheduler) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	ready := make([]Task, 0, usualBatch)
	for last := s.epoch; s.ctx.Err() == nil; {
		now := time.Now()
		s.recall(now, ranAhead(elapsed(last, now)))
		last = now
		ready = s.round(now, ready)
		s.sleep(timer)
	}
}

// round calls tasks that are due, at most usualBatch of them. So the clock is read again between
// rounds, and the outbox has something to send while the remaining tasks are called. round
// returns its buffer, ready, for the next round.
func (s *Scheduler) round(now time.Time, ready []Task) []Task {
	ready = ready[:0]
	tick := s.tick(now)
	now = now.Add(s.start(tick + 1).Sub(now)) // moves both the wall and the monotonic reading
	for range usualBatch {
		t, suspect := s.take(tick)
		if t == nil {
			break
		}
		ask := t.Tick
		if suspect {
			if ask = t.Suspect; !s.concerns(t) {
				s.putBack(t)
				continue
			}
		}
		next, renew := ask(now)
		if renew {
			ready = append(ready, t)
		}
		s.settle(t, next, tick)
	}
	s.out.submit(ready)
	clear(ready) // so that the buffer does not keep tasks alive that have ended
	return ready
}

// take removes the next due task from the wheel. It returns nil if none is due.
func (s *Scheduler) take(tick int64) (t Task, suspect bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planned = math.MinInt64 // awake: tasks scheduled now are seen before the next sleep
	e, suspect := s.wheel.Pop(tick)
	if e == nil {
		return nil, false
	}
	e.firing = true
	return e.task, suspect
}

// settle puts t back on the wheel at the time that t answered with, unless t was removed or
// scheduled anew in the meantime.
func (s *Scheduler) settle(t Task, next time.Time, tick int64) {
	e := t.Entry()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.firing && !next.IsZero() {
		// Not in this step again: a task that answers with a time in the past must not keep the
		// goroutine from the others.
		s.wheel.Set(e, max(s.tick(next), tick+1))
	}
	e.firing = false
}

// sleep waits until the next occupied slot, until it is time to compare the clocks, or until
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

// plan returns when to wake up, and false if there is nothing to wake up for. After the wheel
// has become empty the goroutine still wakes up once more, so that Schedule need not signal it:
// where locks are taken and released one after the other, waking the goroutine for each of them
// would be a quarter of their cost.
func (s *Scheduler) plan() (until time.Time, ok bool) {
	watch := nextWatch(time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	next, ok := s.wheel.Next()
	s.planned = s.tick(watch) + 1 // the watch is in the step before
	switch {
	case ok && next < s.planned:
		s.planned = next
		watch = s.start(next)
	case !ok && !s.used:
		s.planned = math.MaxInt64
		return time.Time{}, false
	}
	s.used = false
	return watch, true
}

// tick returns the step of the wheel that contains at.
func (s *Scheduler) tick(at time.Time) int64 {
	return max(0, int64(at.Sub(s.epoch)/Resolution))
}

func (s *Scheduler) start(tick int64) time.Time {
	return s.epoch.Add(time.Duration(tick) * Resolution)
}
