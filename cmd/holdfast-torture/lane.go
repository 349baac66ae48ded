// A lane: one user of one kind, which takes turns until it is told to stop.

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
)

// objectsOfAKind is on how many names the lanes of a kind contend.
const objectsOfAKind = 2

type lane struct {
	*line
	name  string // process.kind.number
	kind  string
	ways  ways
	rand  *rand.Rand
	epoch *atomic.Int64 // of the names without leases
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
	object := fmt.Sprintf("%s-%d", l.kind, l.rand.IntN(objectsOfAKind))
	if !rules[l.kind].owned {
		object += fmt.Sprintf(".%d", l.epoch.Load())
	}
	if !l.ready[object] {
		if err := l.ways.prepare(ctx, object); err != nil {
			return l.missed(ctx, object, err)
		}
		l.ready[object] = true
	}
	how := l.ways.take(object, l.rand)
	try := l.rand.IntN(10) == 0
	waiting, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	call := time.Now()
	g, token, err := how.lock(waiting, try)
	if err != nil {
		return l.missed(ctx, object, err)
	}
	h := &holdUnderWay{lane: l, grant: g, how: how, token: token}
	h.held = g.Context(context.Background())
	h.watch()
	return h.live(note{Object: object, Call: stamp(call), Token: token, Amount: how.amount})
}

// patience is for how long a turn waits. Some give up at once, to leave requests
// behind that are on their way.
func (l *lane) patience() time.Duration {
	if l.rand.IntN(10) == 0 {
		return time.Duration(l.rand.IntN(20_000)) * time.Microsecond
	}
	return 30 * time.Second
}

// missed tells of an attempt without a grant.
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

// holdUnderWay is a hold while its lane has it.
type holdUnderWay struct {
	*lane
	grant grant
	held  context.Context
	how   taking
	token int64

	unwatch  func() bool
	deadline atomic.Pointer[time.Time] // the last that was seen
	told     atomic.Pointer[note]      // when the loss was told
}

// watch notes the instant at which a loss is told.
func (h *holdUnderWay) watch() {
	h.unwatch = context.AfterFunc(h.held, func() {
		now, end := time.Now(), h.grant.Deadline()
		if end.IsZero() { // a quorum has none any more
			seen := h.deadline.Load()
			if seen == nil {
				return // lost before the first look: it was never claimed
			}
			end = *seen
		}
		h.told.Store(&note{Told: stamp(now), Deadline: stamp(now) + int64(end.Sub(now))})
	})
}

// attest returns an instant at which the lease lasted, if it does: the clock is read
// before the context is looked at.
func (h *holdUnderWay) attest() (at int64, lasts bool) {
	now := time.Now()
	if h.held.Err() != nil {
		return 0, false
	}
	if rules[h.kind].owned {
		end := h.grant.Deadline()
		if !now.Before(end) {
			return 0, false
		}
		h.deadline.Store(&end)
	}
	return stamp(now), true
}

// live is a hold from its grant to its end.
func (h *holdUnderWay) live(n note) error {
	at, lasts := h.attest()
	if lasts {
		n.Topic, n.Lane, n.At = granted, h.name, at
		got, err := h.ask(n)
		if err != nil {
			return err
		}
		if err := h.work(got); err != nil {
			return err
		}
	}
	return h.finish(lasts)
}

// work is what is done under the lock: some time passes, and the register that
// was read is written, one more than it was.
func (h *holdUnderWay) work(read answer) error {
	if err := h.idle(h.length()); err != nil {
		return err
	}
	if h.how.nests && h.rand.IntN(10) == 0 {
		h.nest()
	}
	writes := rules[h.kind].fenced && h.how.amount == rules[h.kind].capacity
	if !writes || read.Stale || h.held.Err() != nil {
		return nil
	}
	at, _ := h.attest()
	_, err := h.ask(note{Topic: writing, At: at, Value: read.Value + 1})
	return err
}

// length is how long a hold is to last: most are short, a few outlast their lease.
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

// idle lets time pass, and goes on claiming the hold as long as it lasts.
func (h *holdUnderWay) idle(d time.Duration) error {
	for until := time.Now().Add(d); time.Now().Before(until); {
		time.Sleep(min(time.Until(until), 20*time.Millisecond))
		at, lasts := h.attest()
		if !lasts {
			return nil
		}
		if err := h.tell(note{Topic: holding, At: at}); err != nil {
			return err
		}
	}
	return nil
}

// nest takes the same thing again under the lease, and gives that back.
func (h *holdUnderWay) nest() {
	ctx, cancel := context.WithTimeout(h.held, time.Second)
	defer cancel()
	if inner, token, err := h.how.lock(ctx, false); err == nil {
		if token != h.token {
			h.token = -1 // told by finish
		}
		_ = inner.Release(ctx)
	}
}

// finish claims the hold a last time and gives it back.
func (h *holdUnderWay) finish(entered bool) error {
	if at, lasts := h.attest(); lasts && entered {
		if err := h.tell(note{Topic: holding, At: at}); err != nil {
			return err
		}
	}
	n := note{Topic: ended, Call: stamp(time.Now())}
	err := h.grant.Release(context.Background())
	n.At = stamp(time.Now())
	h.unwatch()
	n.Ending = endingOf(err)
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
