// Package latch has the countdown latch, in the layout of Redisson's RCountDownLatch: the key with the
// latch's name is a count, and is deleted at zero. So Go and Java processes count down and wait together.
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

// Latch is a count. All callers that use its name share it: some set the count and wait, others count down.
// When the count is zero, all waiters go on, and the key of the latch is deleted. The latch may then be set
// again, which begins another generation.
//
// A Latch holds no state: any number of goroutines may use one value. Each call takes effect once, even if
// its request had to be sent several times.
type Latch struct {
	engine *engine.Engine
	name   string
	at     keys.Latch
	calls  engine.Ledger
	err    error // why it cannot be used
}

// New returns the latch of that name. key is the key of the latch in Redis. New does no I/O. If an argument
// is wrong, every call on the latch returns the error.
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

// Option is an option of TrySetCount.
type Option func(*settings)

type settings struct {
	life time.Duration
	set  bool
}

// ExpiresIn makes the latch run out d after it was set, if its count is not zero by then. d is at least 1
// ms. When the latch runs out, waiters get ErrDeleted within 1.25 s. Without ExpiresIn a latch lasts until
// its count is zero or somebody deletes it.
func ExpiresIn(d time.Duration) Option {
	return func(s *settings) { s.life, s.set = d, true }
}

// TrySetCount sets the count to n if the latch is not set, and reports whether it has set the count. n is
// at least 1. A latch is not set if it was never set, has come to zero, has run out or was deleted.
//
// If ctx ends before Redis has answered, the error matches ctx's error. If the request was sent, the error
// also matches ErrUnknown: the request may have set the latch, or may do so later. Delete returns the same
// errors.
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

// CountDown counts the latch down by one, and returns the new count. If the latch is not set, CountDown
// does nothing and returns 0. Each call counts once, even if the request was sent again because the answer
// was lost.
//
// CountDown goes on when ctx is cancelled, so that a deferred CountDown is always right. If Redis does not
// answer within 5 s, CountDown returns an error that matches ErrUnknown, and goes on in the background for
// up to 5 minutes. In that case do not call it again for the same work. If the request arrives late and the
// latch was set again in the meantime, the request counts the new count down. So if you would set a latch
// again within minutes, use a new name each time.
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

// Count returns the count. It returns 0 if the latch is not set. Count asks the master.
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

// Delete deletes the latch, even if its count is not zero, and reports whether the latch was set. Waiters
// get ErrDeleted.
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
