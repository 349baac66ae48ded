// What a waiter and its line exchange: the terms of a wait, one request and its answer, and how the
// wait ended.

package line

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Want is what a caller says about its wait. Nobody changes it while the wait lasts.
type Want struct {
	Kind    telemetry.Kind // for metrics
	Key     string         // of the line
	Channel string         // where releases are published
	Told    Told           // asked for the channels instead of Channel, once they are needed; nil without a queue
	Grant   Grant
	// Weight is how much the waiter asks for, if waiters may ask for different amounts: see
	// overtaking. 0 if they may not.
	Weight int
	// Group is the same for all waiters that ask for different weights of one thing.
	Group string
	// Closing ends the wait, with its cause. If it is nil, that of Config does.
	Closing context.Context
	// Place is how the waiter stands in a queue that Redis keeps. The zero Place: Redis keeps none.
	Place Place
	Asker Asker
	// Hearer, if set, hears each message that wakes the waiter as the head.
	Hearer Hearer
}

// Asker asks Redis for the thing.
type Asker interface {
	// Try asks once. See ForAll.
	Try(context.Context, Ask) (Answer, error)
}

// ForAll returns err as an error of Asker.Try that ends the wait of everybody in the line: nothing is left
// to wait for, and each of them would be answered the same.
func ForAll(err error) error { return forAll{err} }

type forAll struct{ error }

func (f forAll) Unwrap() error { return f.error }

// Hearer takes in what a message says.
type Hearer interface {
	// Heard takes in the last message, "" if the waiter was woken by something else. An error ends
	// the wait with that error: nothing is left to wait for.
	Heard(message string) error
}

// Told knows the channels on which changes are published, and their messages.
type Told interface {
	// Channels returns all of these channels.
	Channels() []string
	// HandOver returns what a message hands over. It is zero for any other message.
	HandOver(message string) HandOver
}

// Grant says what a grant to the head of a line means for the waiters behind it.
type Grant int

const (
	// Exclusive: nothing is left until the thing is released. The next waiter waits for a message.
	Exclusive Grant = iota
	// Shared: there may be more. The next waiter tries at once.
	Shared
	// Common: it is for everybody. All waiters have it.
	Common
)

// Place is what a waiter brings to a queue that Redis keeps. A place in such a queue that is not
// kept, because the process has died, is passed over.
type Place struct {
	Grain Grain
	Owner int64  // the number of the owner that the waiter is itself
	ID    string // that owner's id, if each waiter has a place
	// Lasts is how long a place is kept at least, after the request that kept it was sent. It is
	// also how long the thing is held if it is handed to the waiter. 0 means that being handed it
	// is not enough: the waiter must ask.
	Lasts time.Duration
	Terms Terms
}

// Ask is what the line gives to one request: as which owner it asks, for example.
type Ask struct {
	// Owner is the number of the owner that asks: the waiter's own, or the one that has its
	// process's seat.
	Owner int64
	// InQueue says that the request takes a place in Redis's queue, or keeps it.
	InQueue bool
	// Seq is the number of the place, 0 if it is not known yet. A waiter that has lost its place
	// takes it again with this number.
	Seq int64
	// Poll says that nothing has announced a change since the last answer, which said that the thing
	// is held for longer than until now.
	Poll bool
	// Next is the number of the owner that is to have the seat once Owner is granted the thing,
	// because others of the process wait; 0 if nobody does.
	Next int64
	// Follows says that other waiters of this process stand before this one. So it must not take
	// what it finds free: the others may only have lost their places for the moment.
	Follows bool
	// Behind is the IDs of the waiters whose places the request must keep together with its own.
	Behind []string
}

// Answer is what one request has found out. With an error, only Doubt counts.
type Answer struct {
	Granted bool
	// Lasts is how long the grant lasts, if that matters: see Exclusive.
	Lasts time.Duration
	// Held is how long another still has the thing, if the request was refused.
	Held Held

	// What follows is about Redis's queue.

	// Kept is when the request that has kept the place was sent.
	Kept time.Time
	// Seq is the number of the place, if the request was refused. NextSeq is the number of the place
	// that Ask.Next got, if it was granted; 0: that owner got none.
	Seq, NextSeq int64
	// Nudge is the IDs of the waiters that must each ask: the grant went to them, or is
	// theirs to take, or their place is gone. If the asker's own place was gone, its ID is among
	// them, and all waiters behind it are nudged.
	Nudge []string
	// Doubt says that an unanswered request may still change something for Ask.Owner or Ask.Next.
	// Or the place had been lost: what was handed to Owner in it may have gone to another since,
	// and the message may be still to come.
	Doubt bool
}

// Outcome is how a wait ended. Passed and Handed are both zero if a request was granted, and if the
// wait failed.
type Outcome struct {
	Waited bool // the first request was not enough
	// Passed is what a holder of this process has passed on to the waiter.
	Passed any
	// Handed is what a message has handed to the waiter.
	Handed Handed
	// Orphan is the number of the owner whose seat the caller must give up, whether the wait failed
	// or not; 0: none.
	Orphan int64
}

// HandOver is a message that hands a thing over to a waiter, so that it need not ask.
type HandOver struct {
	Owner int64 // the number of the owner that has it now
	Token int64 // 0: nothing was handed over
	// Left is how much longer that owner's place was kept when the message was sent. The owner has
	// the thing for as long.
	Left time.Duration
}

// Handed is a HandOver that a waiter has taken.
type Handed struct {
	HandOver
	Until time.Time // when the place was last kept, and how long it lasts since
}

// Terms are the conditions on which something is held, as far as they matter for passing it on. A
// holder can pass it on only to a waiter of this process with equal Terms. The zero Terms mean that
// nothing is passed on, neither to this holder nor from it.
type Terms struct {
	Lease    time.Duration
	Grace    time.Duration
	MaxHold  time.Duration
	Notified bool
}
