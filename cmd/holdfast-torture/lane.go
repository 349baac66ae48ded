// A lane: one user of one kind, which takes turns until it is asked to stop.

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
)

// objectsOfAKind is how many names the lanes of a kind contend for, times the run's width.
const objectsOfAKind = 2

type lane struct {
	*line
	place string // the place of its process in the crew
	name  string // process.kind.role
	kind  string
	names int // that the lanes of the kind contend for
	ways  ways
	rand  *rand.Rand
	epoch *atomic.Int64 // part of the names of objects without leases
	ready map[string]bool
}

// run takes turns until ctx ends.
func (l *lane) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := l.turn(ctx); err != nil {
			return fmt.Errorf("lane %s: %w", l.name, err)
		}
	}
	return nil
}

// turn is one attempt to hold something and, if it is granted, the hold. It returns
// an error if the referee cannot be reached.
func (l *lane) turn(ctx context.Context) error {
	object := fmt.Sprintf("%s-%d", l.kind, l.rand.IntN(l.names))
	if !rules[l.kind].owned {
		object += fmt.Sprintf(".%d", l.epoch.Load())
	}
	if err := l.prepared(ctx, object); err != nil {
		return l.missed(ctx, object, err)
	}
	how := l.ways.take(object, l.ways.draw(l.rand), l.rand)
	h, err := l.lock(ctx, object, how, l.patience(), l.rand.IntN(10) == 0)
	if h == nil {
		return err
	}
	return h.live()
}

// prepared makes the object ready to be taken.
func (l *lane) prepared(ctx context.Context, object string) error {
	if l.ready[object] {
		return nil
	}
	err := l.ways.prepare(ctx, object)
	l.ready[object] = err == nil
	return err
}

// lock takes the object and returns the hold, which is watched from now on; nil if it was not
// granted.
func (l *lane) lock(ctx context.Context, object string, how taking, patience time.Duration, try bool) (*holdUnderWay, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	call := time.Now()
	g, token, err := how.lock(waiting, try)
	if err != nil {
		return nil, l.missed(ctx, object, err)
	}
	return l.hold(object, call, !try, how, g, token), nil
}

// hold returns a hold that has begun, and is watched from now on.
func (l *lane) hold(object string, call time.Time, waited bool, how taking, g grant, token int64) *holdUnderWay {
	h := &holdUnderWay{lane: l, object: object, call: stamp(call), waited: waited, grant: g, how: how, token: token}
	h.held = g.Context(context.Background())
	h.watch()
	return h
}

// patience returns how long a turn waits. Some turns give up at once, to leave requests behind
// that are on their way.
func (l *lane) patience() time.Duration {
	if l.rand.IntN(10) == 0 {
		return time.Duration(l.rand.IntN(20_000)) * time.Microsecond
	}
	return 30 * time.Second
}

// missed reports an attempt without a grant.
func (l *lane) missed(ctx context.Context, object string, err error) error {
	if ctx.Err() != nil {
		return nil // told to stop
	}
	class := classOf(err)
	if class == noPermits {
		delete(l.ready, object)
	}
	if class != "busy" && class != "cancelled" && !strings.HasPrefix(class, "no answer") {
		time.Sleep(10 * time.Millisecond) // as a user would, before the next attempt
	}
	return l.tell(note{Topic: failed, Lane: l.name, Object: object, Ending: class})
}

// holdUnderWay is a hold for as long as its lane has it.
type holdUnderWay struct {
	*lane
	object string
	call   int64 // when Lock was called
	waited bool  // the lane was ready to wait
	grant  grant
	held   context.Context
	how    taking
	token  int64

	unwatch  func() bool
	heard    chan struct{}             // closed when the holder was notified of the loss, and that was recorded
	deadline atomic.Pointer[time.Time] // the last deadline that was seen
	told     atomic.Pointer[note]      // when the holder was notified of the loss
}

// watch records the instant at which the holder is notified of a loss.
func (h *holdUnderWay) watch() {
	h.heard = make(chan struct{})
	h.unwatch = context.AfterFunc(h.held, func() {
		defer close(h.heard)
		now, end := time.Now(), h.grant.Deadline()
		if rules[h.kind].undated {
			end = now
		} else if end.IsZero() { // a quorum's lease no longer has one
			seen := h.deadline.Load()
			if seen == nil {
				return // lost before the first look: it was never claimed
			}
			end = *seen
		}
		h.told.Store(&note{Told: stamp(now), Deadline: stamp(now) + int64(end.Sub(now))})
	})
}

// attest returns an instant at which the lease lasted, if it lasts: it reads the clock before
// it looks at the context.
func (h *holdUnderWay) attest() (at int64, lasts bool) {
	now := time.Now()
	if h.held.Err() != nil {
		return 0, false
	}
	if rules[h.kind].owned && !rules[h.kind].undated {
		end := h.grant.Deadline()
		if !now.Before(end) {
			return 0, false
		}
		h.deadline.Store(&end)
	}
	return stamp(now), true
}

// wordPatience is how long awaitWord waits for the notice of a loss, after the deadline.
const wordPatience = 3 * time.Second

// awaitWord waits, if the deadline has passed, until the holder is notified of the loss. A loss that is not
// notified within wordPatience is recorded as notified at the end of that time, too late for any margin.
func (h *holdUnderWay) awaitWord() {
	seen := h.deadline.Load()
	if seen == nil || time.Now().Before(*seen) || time.Now().Before(h.grant.Deadline()) {
		return
	}
	select {
	case <-h.heard:
	case <-time.After(wordPatience):
		now := time.Now()
		h.told.CompareAndSwap(nil, &note{Told: stamp(now), Deadline: stamp(now) + int64(seen.Sub(now))})
	}
}

// live runs a hold from its grant to its end.
func (h *holdUnderWay) live() error {
	got, entered, err := h.enter()
	if err == nil && entered {
		err = h.work(got)
	}
	if err != nil {
		return err
	}
	return h.finish(entered)
}

// enter claims the hold, if it lasts, and reads the register.
func (h *holdUnderWay) enter() (read answer, entered bool, err error) {
	at, lasts := h.attest()
	if !lasts {
		return answer{}, false, nil
	}
	read, err = h.ask(note{
		Topic: granted, Lane: h.name, Object: h.object, Call: h.call, At: at,
		Token: h.token, Amount: h.how.amount, Waited: h.waited, Renewed: h.how.renewed,
		Owner: ownerOf(h.grant), Deadline: h.until(),
	})
	return read, err == nil, err
}

// work is the work under the lock: some time passes, and the register gets the value that was
// read plus one.
func (h *holdUnderWay) work(read answer) error {
	if err := h.idle(h.length(), shortBeat); err != nil {
		return err
	}
	if h.how.nests && h.rand.IntN(10) == 0 {
		h.nest()
	}
	if !rules[h.kind].fenced || h.how.amount != rules[h.kind].capacity {
		return nil
	}
	_, err := h.write(read)
	return err
}

// write gives the register the value that was read plus one, unless the hold is over or was overtaken.
func (h *holdUnderWay) write(read answer) (taken bool, err error) {
	if read.Stale || h.held.Err() != nil {
		return false, nil
	}
	at, _ := h.attest()
	after, err := h.ask(note{Topic: writing, At: at, Value: read.Value + 1})
	return err == nil && !after.Stale, err
}

// length returns how long a hold must last: most are short, a few outlast their lease.
func (h *holdUnderWay) length() time.Duration {
	lease := h.ways.lease
	switch n := h.rand.IntN(1000); {
	case n < 3:
		return lease/2 + time.Duration(h.rand.Int64N(int64(lease)))
	case n < 30:
		return time.Duration(h.rand.IntN(50)) * time.Millisecond
	case n < 200:
		return time.Duration(h.rand.IntN(3000)) * time.Microsecond
	}
	return 0
}

// shortBeat is the pause between two claims of a hold while it lasts.
const shortBeat = 20 * time.Millisecond

// idle lets the time d pass, and goes on claiming the hold as long as it lasts.
func (h *holdUnderWay) idle(d, beat time.Duration) error {
	for until := time.Now().Add(d); time.Now().Before(until); {
		time.Sleep(min(time.Until(until), beat))
		at, lasts := h.attest()
		if !lasts {
			return nil
		}
		if err := h.tell(note{Topic: holding, At: at, Deadline: h.until()}); err != nil {
			return err
		}
	}
	return nil
}

// until returns the deadline that the last look has seen; 0 if there is none.
func (h *holdUnderWay) until() int64 {
	if end := h.deadline.Load(); end != nil {
		now := time.Now()
		return stamp(now) + int64(end.Sub(now)) // it may not be on the wall clock
	}
	return 0
}

// nest takes the same object again under the lease, and releases it.
func (h *holdUnderWay) nest() {
	ctx, cancel := context.WithTimeout(h.held, time.Second)
	defer cancel()
	if inner, token, err := h.how.lock(ctx, false); err == nil {
		if token != h.token {
			h.token = -1 // finish reports it
		}
		_ = inner.Release(ctx)
	}
}

// finish claims the hold a last time and releases it.
func (h *holdUnderWay) finish(entered bool) error {
	if err := h.claimLast(entered); err != nil {
		return err
	}
	h.awaitWord()
	call := time.Now()
	err := h.grant.Release(context.Background())
	return h.report(entered, call, endingOf(err), err)
}

// claimLast claims the hold a last time.
func (h *holdUnderWay) claimLast(entered bool) error {
	at, lasts := h.attest()
	if !lasts || !entered {
		return nil
	}
	return h.tell(note{Topic: holding, At: at})
}

// report reports to the referee how the hold has ended. call is when its release was called, and
// err is the release's error.
func (h *holdUnderWay) report(entered bool, call time.Time, ending string, err error) error {
	n := note{Topic: ended, Call: stamp(call), At: stamp(time.Now()), Ending: ending}
	if !h.unwatch() {
		<-h.heard
	}
	if n.Ending == lost {
		n.Why = err.Error()
	}
	if told := h.told.Load(); told != nil && n.Ending == lost {
		n.Told, n.Deadline = told.Told, told.Deadline
	}
	if h.token == -1 {
		n.Ending = unforeseen + "a nested lease has another token"
	}
	if !entered {
		return h.tell(note{Topic: failed, Ending: "granted too late"})
	}
	return h.tell(n)
}
