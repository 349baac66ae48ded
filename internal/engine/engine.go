// The machinery of one Client, and how Close ends it.

package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/pubsub"
	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Engine is the machinery of one Client.
type Engine struct {
	Conn     *conn.Manager
	Renewals *renewal.Scheduler
	Lines    *line.Lines
	subs     *pubsub.Service
	start    time.Time // when the Client was made
	// Keys is what all keys and channels begin with. It is set before the Engine is used.
	Keys keys.Space

	identity
	telling
	pools
	tracks   tracks
	joins    joins
	registry registry
	graces   graces
	releases releases // behind Sentinel
	gaveUp   gaveUp
	presence *presence // what it says of itself; nil if nothing
	Ended    Ended     // what it knows of the generations of barriers
	Marker   Aging     // of the marker of its server, if that serves a Quorum

	ending
	work work // calls that may need a clean-up, and the clean-ups

	broken error // why it cannot be used; then it has nothing else
}

// identity is what makes the ids of a Client's owners unique.
type identity struct {
	client string       // this Client's part of its owner ids
	owners atomic.Int64 // the number of the last one
}

// telling is how a Client reports to its user what happens.
type telling struct {
	Telemetry *telemetry.Telemetry
	Log       *slog.Logger
	reports   reports
}

// pools keep what is used again.
type pools struct {
	// Scratch is for package hold. It pools the state that an acquisition needs until it has its
	// grant.
	Scratch sync.Pool
	// Smalls is the pool from which resources take the calls that begin and end a hold.
	Smalls conn.Smalls
}

// ending is how far Close has come.
type ending struct {
	closing context.Context // ends with errs.Closed when Close begins
	end     context.CancelCauseFunc
	// draining ends with errs.Closed when Shutdown begins, and with closing at the latest.
	draining context.Context
	drain    context.CancelCauseFunc
	begun    atomic.Bool   // Close has begun
	closed   chan struct{} // closed when Close is done

	cleaning context.Context // ends when Close no longer waits for clean-ups
	giveUp   context.CancelFunc
}

// New returns the Engine on the Redis behind rdb. It does no I/O. The error matches
// errs.BadArgument if rdb is nil or of a kind that cannot be served.
func New(rdb redis.UniversalClient, tel *telemetry.Telemetry, log *slog.Logger) (*Engine, error) {
	e := &Engine{
		start:    time.Now(),
		identity: identity{client: newClient()},
		telling:  telling{Telemetry: tel},
		ending:   ending{closed: make(chan struct{})},
	}
	e.Log = e.reports.begin(tel, log)
	manager, err := conn.New(rdb, e.Log, conn.Events{Doubtful: e.doubtful, Replaced: e.replaced})
	if err != nil {
		return nil, err
	}
	e.Conn = manager
	e.closing, e.end = context.WithCancelCause(context.Background())
	e.draining, e.drain = context.WithCancelCause(e.closing)
	e.cleaning, e.giveUp = context.WithCancel(context.Background())
	e.subs = pubsub.New(manager, pubsub.Config{Logger: e.Log, LacksCommand: conn.LacksCommand, Reconnected: func() { e.measure(tel.Reconnected) }})
	e.Renewals = renewal.New(&sender{e: e})
	e.Lines = line.New(line.Config{
		Subscriptions: e.subs,
		Telemetry:     tel,
		Closing:       e.closing,
		NewOwner:      func() int64 { return e.owners.Add(1) },
		Holds:         e.Holds,
		Wide:          manager.Wide,
	})
	return e, nil
}

// Broken returns an Engine that cannot be used. What is made with it fails every call with err.
func Broken(err error) *Engine { return &Engine{broken: err} }

// Broken returns nil, or why the Engine cannot be used.
func (e *Engine) Broken() error {
	if e == nil {
		return errNoClient
	}
	return e.broken
}

// Usable returns nil if what was made with e can be used. Otherwise it returns why not: err, which was
// found when it was made, or else what is wrong with e. A nil e belongs to a zero value.
func Usable(e *Engine, err error) error {
	if err != nil {
		return err
	}
	return e.Broken()
}

// Made returns v. If v is nil, it returns a zero value, whose calls fail without a panic.
func Made[T any](v *T) *T {
	if v == nil {
		return new(T)
	}
	return v
}

// errNoClient is why the zero value of a synchronizer cannot be used.
var errNoClient = fmt.Errorf("it was not made by a Client: %w", errs.BadArgument)

// NewOwner returns the id of a new owner. No two acquisitions share one, so the answer to "is my
// field there?" also answers "did my request run?".
func (e *Engine) NewOwner() (client string, id int64) { return e.client, e.owners.Add(1) }

// Client returns this Client's part of its owner ids.
func (e *Engine) Client() string { return e.client }

// Age returns how old the Client is, by the monotonic clock. Holds store times as ages, which take
// a third of the space of a time.Time.
func (e *Engine) Age() time.Duration { return time.Since(e.start) }

// AgeAt returns how old the Client is at the time t, which must have a monotonic reading.
func (e *Engine) AgeAt(t time.Time) time.Duration { return t.Sub(e.start) }

// AtAge returns the time at which the Client is d old. Only its monotonic reading counts.
func (e *Engine) AtAge(d time.Duration) time.Time { return e.start.Add(d) }

// Closing returns a context that ends when the Client begins to close.
func (e *Engine) Closing() context.Context { return e.closing }

// Begin notes the beginning of a call that may need a clean-up. The caller must call Done at its
// end; Close waits for that. Once the Client closes, no call begins: the error is errs.Closed.
func (e *Engine) Begin() error {
	if !e.work.begin(false) {
		return errs.Closed
	}
	return nil
}

// Done notes the end of a call that Begin noted.
func (e *Engine) Done() { e.work.done() }

// closeGrace is how long Close waits for the clean-up of cancelled calls: the longest that a
// request may take effect after its sending, plus some leeway. Beside a server that answers late,
// Close waits longer.
const (
	closeGrace = conn.Window + leeway
	leeway     = 500 * time.Millisecond
)

// Close ends waits and holds with errs.Closed, lets the clean-up of cancelled calls finish within
// closeGrace, or for as long as a slow server needs for it, and then ends every goroutine and
// connection. What is held stays in Redis until its lease runs out, because work may still be going
// on under it. Close may be called twice, and concurrently. If the user's own code (a log handler,
// a tracer) keeps a goroutine from ending, Close leaves that goroutine behind.
func (e *Engine) Close() { e.close(context.Background()) }

// close is Close. When ctx has ended, it waits for a slow server no longer than for another one.
func (e *Engine) close(ctx context.Context) {
	if e.begun.CompareAndSwap(false, true) {
		defer close(e.closed)
		until := time.Now().Add(closeGrace)
		e.work.close()
		held := e.registry.any()
		e.end(errs.Closed)
		e.registry.end(errs.Closed)
		e.Renewals.Close()
		if e.presence != nil {
			e.presence.leave(held)
		}
		e.Conn.Interrupt()
		e.work.windUp(ctx, closeGrace, e.Conn.Needs()+leeway)
		e.giveUp()
		e.subs.Close()
		e.Conn.Close()
		if soonest := time.Now().Add(tellingGrace); until.Before(soonest) {
			until = soonest
		}
		e.work.wait(until)
		e.graces.close()
		e.reports.close(until)
		return
	}
	<-e.closed
}
