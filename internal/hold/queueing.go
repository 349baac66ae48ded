// Queues in Redis: what a synchronizer with a queue brings, and an acquisition's place in that
// queue.

package hold

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/line"
)

// Queueing is a Resource whose waiters have places in a queue that Redis keeps. Its Release gives
// up the place too, and a waiter that stops waiting always gives its place up.
type Queueing interface {
	Resource
	// Grain says who has a place in the queue.
	Grain() line.Grain
	// Keeps returns how long a place is kept after the last request that named it, and how long a
	// hold that is handed to the waiter in that place lasts.
	Keeps() time.Duration
	// Enter is Acquire for a waiter that has a place in the queue, or takes one. Entered returns what
	// its reply says beside that.
	Enter(Entry) *conn.Call
	Entered(enter *conn.Call) Entered
	// Free is Release for a hold for which nobody is known to wait. The reply is Done or
	// Refused, without the time. It is conn.Awaited if somebody does wait: then nothing was done.
	// Awaited reports whether the reply says that somebody waits, or has heard of the release.
	Free(owner Owner, publish string) *conn.Call
	Awaited(free *conn.Call) bool
	// ReleaseAnd is Release with two more steps: leaves gives up its place, and joins takes a place
	// if this call releases the hold. Either owner may be zero. Released returns what the reply to it,
	// or to Release, says beside that.
	ReleaseAnd(owner Owner, publish string, leaves, joins Owner) *conn.Call
	Released(release *conn.Call) Released
}

// Entered is what the reply to an Enter says about the queue.
type Entered struct {
	// Granted: how many more tokens are reserved, and the number of the place of Entry.Ask.Next; 0:
	// it has none.
	Reserved, NextSeq int64
	// Refused: the number of the place; 0: there is none.
	Seq int64
	// The owners that must be nudged: see line.Answer.
	Nudge []string
}

// Released is what the reply to a release says about the queue.
type Released struct {
	Seq  int64 // the number of the place that was taken; 0: none was
	Left Left
}

// Left is for whom a release has freed the resource, as far as that matters to waiters of this
// process.
type Left int

// For whom a release may free the resource.
const (
	LeftToNobody  Left = iota // or to a waiter of this Client
	LeftOpen                  // to those outside the queue, for a moment
	LeftToAnother             // to a waiter of another Client
)

// Looking is a Queueing whose waiters may send a Look, which is cheaper than Enter, when a poll is
// due and no message has announced a change.
type Looking interface {
	Queueing
	// Look returns a call that keeps the owner's place, if an Enter would do nothing else. Looked
	// returns what a Done reply says. A Refused reply says that the waiter must Enter.
	Look(owner Owner) *conn.Call
	Looked(look *conn.Call) Looked
	// Mark returns the mark by which a Look distinguishes that owner from other holders.
	Mark(owner Owner) Mark
}

// Looked is what a Look has seen of the holder.
type Looked struct {
	Held   line.Held // how long it has the thing at most
	Holder Mark
}

// Mark tells most holders apart. It is never 0.
type Mark int64

// Entry is one request of a waiter that has a place in a queue, or takes one.
type Entry struct {
	Owner  Owner
	Length time.Duration // of the lease that is asked for
	Ask    line.Ask
	// Reserve is how many tokens a grant is to reserve for the waiters of this process that the
	// thing is passed on to. Publish is the command that publishes releases. By it the script finds
	// out whether others than Clients of Holdfast wait; if so, it reserves none.
	Reserve int
	Publish string
}

// takePlace sets up the acquisition's place in its resource's queue, if the resource has one.
func (a *acquisition) takePlace() {
	q, ok := a.resource.(Queueing)
	if !ok {
		return
	}
	p := &a.waiting.Place
	p.Grain, p.Owner = q.Grain(), a.owner.id
	if !a.settings.Fixed && a.settings.Replicas == 0 && a.settings.Grace == 0 { // a place lasts for less than many a grace
		p.Lasts = lasts(q.Keeps())
	}
	if p.Grain == line.PerWaiter {
		p.ID, a.marks = a.owner.String(), true
	} else {
		p.Terms = a.settings.terms()
	}
}

func (a *acquisition) call(ctx context.Context, ask line.Ask) *conn.Call {
	if !ask.InQueue {
		return a.resource.Acquire(a.owner, a.settings.Length)
	}
	a.become(ask.Owner)
	e := Entry{Owner: a.owner, Length: a.settings.Length, Ask: ask}
	q := a.resource.(Queueing)
	if a.waiting.Place.Terms != (line.Terms{}) {
		e.Reserve, e.Publish = a.settings.LocalHandoffs, a.engine.Publish(ctx)
	}
	return q.Enter(e)
}

// look polls by a Look where that is enough: if the number of the waiter's place is known, and no
// other place is to be kept. It reports false if the waiter must Enter.
func (a *acquisition) look(ctx context.Context, ask line.Ask) (answer line.Answer, enough bool, err error) {
	r, ok := a.resource.(Looking)
	if !ok || !ask.Poll || ask.Seq == 0 || len(ask.Behind) > 0 {
		return line.Answer{}, false, nil
	}
	a.become(ask.Owner)
	call := r.Look(a.owner)
	err = a.engine.Conn.Run(ctx, call)
	a.course.attempts += call.Attempts
	if err != nil || call.Status() != conn.Done {
		return line.Answer{}, err != nil, err
	}
	looked := r.Looked(call)
	last := &a.refusal
	last.sent, last.held, last.mark = call.Sent, looked.Held, looked.Holder
	return line.Answer{Held: looked.Held, Kept: call.Sent, Seq: ask.Seq}, true, nil
}

// become makes the acquisition go on as the owner with that number. It gives up what the owner
// before it may have or may still get.
func (a *acquisition) become(number int64) {
	if number == a.owner.id {
		return
	}
	if a.lateUntil != 0 {
		giveUp(a.engine, a.resource, a.owner, 0, a.lateUntil, a.settings.Length)
		a.lateUntil = 0
	}
	a.owner.id = number
}

// placed adds to the line's answer what the reply to a request, sent then, says about the queue.
func (a *acquisition) placed(answer *line.Answer, e Entered, sent time.Time) {
	answer.Kept, answer.Seq, answer.NextSeq, answer.Nudge = sent, e.Seq, e.NextSeq, e.Nudge
	if answer.Granted && answer.Doubt {
		answer.Kept = time.Time{} // an earlier sending may have taken the next place
	}
	if !answer.Granted && slices.Contains(answer.Nudge, a.owner.String()) {
		// The place was lost, perhaps after a hand-over that has run out since, whose message may
		// still come.
		answer.Doubt = true
	}
}

// lasts returns how long a place that Redis keeps for kept can be relied on here: a millisecond
// less, because Redis counts whole milliseconds, and the margin less.
func lasts(kept time.Duration) time.Duration {
	kept -= time.Millisecond
	return kept - margin(kept)
}

// handed records that a message has handed the resource to the acquisition.
func (a *acquisition) handed(by line.Handed) {
	a.become(by.Owner)
	// The earlier of the two ends: a server that has just become the master may know of the place
	// only from before it was last kept.
	now := time.Now()
	until := earlier(by.Until, now.Add(lasts(by.Left)))
	a.grant = grant{sent: now, until: until, token: by.Token, partial: true}
}

// wholeAfter is how long after a hand-over by a message the holder asks for its whole lease, if it
// still holds the thing then.
const wholeAfter = 20 * time.Millisecond
