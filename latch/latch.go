// Package latch is the countdown latch, in the layout of Redisson's
// RCountDownLatch: at the latch's name a count that goes with zero, so that Go and
// Java processes count down and wait together.
//
// Programs make a Latch with Client.Latch.
package latch

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/lease"
)

const (
	kind = "latch" // for errors, spans and metrics

	// most is the highest count: the scripts count in doubles.
	most = 1 << 53
)

// Latch is a count that is shared by whoever names it: some set it and wait for
// it, some count it down. At zero everybody who waits goes on, and the latch is
// gone; it may be set again, which begins another generation.
//
// It holds no state: a value may be used by any number of goroutines. Each call
// counts once, however often it had to be sent.
type Latch struct {
	engine *engine.Engine
	name   string
	at     keys.Latch
	calls  engine.Ledger
	err    error // why it cannot be used
}

// New returns the latch of that name, which stands at key in Redis. It does no
// I/O; what is wrong with the arguments, each call says.
func New(e *engine.Engine, name, key string) *Latch {
	l := &Latch{engine: e, name: name}
	l.at, l.err = keys.ForLatch(key)
	l.calls = e.Ledger(l.at.Calls)
	return l
}

// Broken returns a latch of which every call fails with err.
func Broken(name string, err error) *Latch { return &Latch{name: name, err: err} }

// Name returns the name that the latch was made with.
func (l *Latch) Name() string { return l.name }

// Option says how a latch is set.
type Option func(*settings)

type settings struct {
	life time.Duration
	set  bool
}

// ExpiresIn has the latch run out d after it was set, at least 1 ms, if it has not
// come to zero by then: those who wait have ErrDeleted, within 1.25 s of it. A
// latch without it lasts until somebody counts it down or deletes it.
func ExpiresIn(d time.Duration) Option {
	return func(s *settings) { s.life, s.set = d, true }
}

// TrySetCount sets the count to n, at least 1, if the latch is not set: if it never
// was, or has come to zero, run out or been deleted. It reports whether it did.
//
// If ctx ends before Redis has answered, the error matches ctx's and, if it may
// have been set or may still be, ErrUnknown; so it is with Delete.
func (l *Latch) TrySetCount(ctx context.Context, n int64, options ...Option) (bool, error) {
	s := settings{}
	for _, o := range options {
		if o != nil {
			o(&s)
		}
	}
	if n < 1 || n > most || s.set && s.life < time.Millisecond {
		return false, l.fail("set", fmt.Errorf("a count of %d for %v: %w", n, s.life, errs.BadArgument))
	}
	ctx, cancel := engine.Bounded(ctx)
	defer cancel()
	return l.change(ctx, "set", setScript, n, s.life.Milliseconds())
}

// CountDown counts the latch down by one, and returns what is left; 0 also if the
// latch is not set, where it does nothing. Each call counts once, even if Redis
// was asked again because its answer was lost.
//
// It goes on when ctx is cancelled, so that a deferred CountDown is always right.
// If it is not answered within 5 s it returns an error that matches ErrUnknown and
// goes on in the background, for up to 5 minutes: it must not be repeated. It then counts
// in whatever generation it finds, also one that was set after it was called: where a
// latch is set anew within minutes give each round a name of its own.
func (l *Latch) CountDown(ctx context.Context) (left int64, err error) {
	if l.err != nil {
		return 0, l.fail("count down", l.err)
	}
	call, err := l.calls.Finish(ctx, func(publish string) engine.Once {
		return l.once(countDownScript, publish)
	})
	if err != nil {
		return 0, l.fail("count down", err)
	}
	return call.Int(2), nil
}

// Count returns the count; 0 if the latch is not set. The master is asked.
func (l *Latch) Count(ctx context.Context) (int64, error) {
	if l.err != nil {
		return 0, l.fail("query", l.err)
	}
	call := &conn.Call{Script: countScript, Keys: []string{l.at.Count}}
	if err := l.engine.Conn.Run(ctx, call); err != nil {
		return 0, l.fail("query", err)
	}
	return call.Int(2), nil
}

// Delete deletes the latch, whatever its count, and reports whether it was set.
// Those who wait have ErrDeleted.
func (l *Latch) Delete(ctx context.Context) (bool, error) {
	return l.change(ctx, "delete", deleteScript)
}

// change runs a call that counts once and that ctx bounds, and reports whether it
// did something.
func (l *Latch) change(ctx context.Context, op string, script *conn.Script, args ...any) (bool, error) {
	if l.err != nil {
		return false, l.fail(op, l.err)
	}
	publish, err := l.engine.Conn.PublishCommand(ctx)
	if err != nil {
		return false, l.fail(op, err)
	}
	call, err := l.calls.Run(ctx, l.once(script, publish, args...))
	if err != nil {
		return false, l.fail(op, err)
	}
	return call.Status() == engine.Done, nil
}

// once is a call that counts once; how to tell is its last two arguments.
func (l *Latch) once(script *conn.Script, publish string, args ...any) engine.Once {
	return engine.Once{
		Script: script,
		Key:    l.at.Count,
		Keys:   []string{l.at.Generations},
		Args:   append(args, publish, l.channel(publish == "SPUBLISH")),
	}
}

// channel returns where the end is told.
func (l *Latch) channel(sharded bool) string {
	if sharded {
		return l.at.Sharded
	}
	return l.at.Channel
}

func (l *Latch) fail(op string, err error) error {
	return lease.CallError(op, kind, l.name, err)
}
