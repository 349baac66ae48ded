// Package latch is the countdown latch, in the layout of Redisson's RCountDownLatch: a count at the
// latch's name, which is deleted at zero. So Go and Java processes count down and wait together.
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
)

const (
	kind = "latch" // for errors, spans and metrics

	// most is the greatest count: the scripts count in doubles.
	most = 1 << 53
)

// Latch is a count. All callers that use its name share it: some set it and wait for it, others
// count it down. At zero all waiters go on, and the latch is gone. It may be set again, which
// begins another generation.
//
// A Latch holds no state: any number of goroutines may use one value. Each call counts once,
// however often it had to be sent.
type Latch struct {
	engine *engine.Engine
	name   string
	at     keys.Latch
	calls  engine.Ledger
	err    error // why it cannot be used
}

// New returns the latch of that name, which is at key in Redis. It does no I/O. If an argument is
// wrong, every call on the latch returns that error.
func New(e *engine.Engine, name, key string) *Latch {
	l := &Latch{engine: e, name: name}
	if l.err = e.Broken(); l.err == nil {
		l.at, l.err = e.Keys.ForLatch(key)
		l.calls = e.Ledger(l.at.Calls)
	}
	return l
}

// Name returns the name that the latch was made with.
func (l *Latch) Name() string { return engine.Made(l).name }

// Option says how TrySetCount sets a latch.
type Option func(*settings)

type settings struct {
	life time.Duration
	set  bool
}

// ExpiresIn makes the latch run out d after it was set, if it has not come to zero by then. d is at
// least 1 ms. Waiters then get ErrDeleted, within 1.25 s. Without ExpiresIn a latch lasts until
// somebody counts it down or deletes it.
func ExpiresIn(d time.Duration) Option {
	return func(s *settings) { s.life, s.set = d, true }
}

// TrySetCount sets the count to n, at least 1, if the latch is not set: if it was never set, has
// come to zero, has run out or was deleted. It reports whether it did.
//
// If ctx ends before Redis has answered, the error matches ctx's error. It also matches ErrUnknown
// if the request was sent: it may have set the latch, or may do so later. The same holds for
// Delete.
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

// CountDown counts the latch down by one, and returns what is left. If the latch is not set, it
// does nothing and returns 0. Each call counts once, even if Redis was asked again because its
// answer was lost.
//
// CountDown goes on when ctx is cancelled, so that a deferred CountDown is always right. If it is
// not answered within 5 s, it returns an error that matches ErrUnknown, and goes on in the
// background for up to 5 minutes. The caller must not repeat it then. The call counts in whatever
// generation it finds, even in one that was set after the call began. If a latch is set anew within
// minutes, give each round a name of its own.
func (l *Latch) CountDown(ctx context.Context) (left int64, err error) {
	if err := l.usable(); err != nil {
		return 0, l.fail("count down", err)
	}
	call, err := l.calls.Finish(ctx, func(publish string) engine.Once {
		return l.once(countDownScript, publish)
	})
	if err != nil {
		return 0, l.fail("count down", err)
	}
	return call.Result(), nil
}

// Count returns the count; 0 if the latch is not set. It asks the master.
func (l *Latch) Count(ctx context.Context) (int64, error) {
	if err := l.usable(); err != nil {
		return 0, l.fail("query", err)
	}
	call := &conn.Call{Script: countScript, Keys: []string{l.at.Count}}
	if err := l.engine.Conn.Run(ctx, call); err != nil {
		return 0, l.fail("query", err)
	}
	return call.Result(), nil
}

// Delete deletes the latch, whatever its count, and reports whether it was set. Waiters get
// ErrDeleted.
func (l *Latch) Delete(ctx context.Context) (bool, error) {
	return l.change(ctx, "delete", deleteScript)
}

// change runs a call that counts once, for as long as ctx allows. It reports whether the call did
// something.
func (l *Latch) change(ctx context.Context, op string, script *conn.Script, args ...any) (bool, error) {
	if err := l.usable(); err != nil {
		return false, l.fail(op, err)
	}
	publish, err := l.engine.Conn.PublishCommand(ctx)
	if err != nil {
		return false, l.fail(op, err)
	}
	call, err := l.calls.Run(ctx, l.once(script, publish, args...))
	if err != nil {
		return false, l.fail(op, l.foreign(ctx, err))
	}
	return call.Status() == conn.Done, nil
}

// once returns a call that counts once. Its last two arguments are the command that publishes and
// the channel.
func (l *Latch) once(script *conn.Script, publish string, args ...any) engine.Once {
	return engine.Once{
		Script: script,
		Key:    l.at.Count,
		Keys:   []string{l.at.Generations},
		Args:   append(args, publish, l.channel(publish == "SPUBLISH")),
	}
}

func (l *Latch) channel(sharded bool) string {
	if sharded {
		return l.at.Sharded
	}
	return l.at.Channel
}

// foreign adds to err what is stored at the latch's key, if that is not a number.
func (l *Latch) foreign(ctx context.Context, err error) error {
	return l.engine.Foreign(ctx, engine.Number, l.at.Count, err)
}

func (l *Latch) fail(op string, err error) error {
	return errs.Call(op, kind, l.Name(), err)
}

func (l *Latch) usable() error {
	l = engine.Made(l)
	return engine.Usable(l.engine, l.err)
}
