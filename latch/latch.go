// Package latch has the countdown latch, in the layout of Redisson's RCountDownLatch. In this layout, the
// key with the name of the latch holds the count, and the key is deleted when the count becomes 0. So Go
// and Java processes count down the same latch, and wait for it together.
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

// Latch is a count. All callers that use the same name share the count: some callers set the count and
// wait, and other callers count down. When the count is 0, all waiters go on, and the key of the latch is
// deleted. After that, a caller may set the latch again, which begins another generation.
//
// A Latch holds no state, so any number of goroutines may use one Latch. Each call takes effect once, even
// if Holdfast had to send its request several times.
type Latch struct {
	engine *engine.Engine
	name   string
	at     keys.Latch
	calls  engine.Ledger
	err    error // why it cannot be used
}

// New returns the latch of the given name. key is the key of the latch in Redis. New does no I/O. If an
// argument is wrong, every call on the latch returns the error.
func New(e *engine.Engine, name, key string) *Latch {
	l := &Latch{engine: e, name: name}
	if l.err = e.Broken(); l.err == nil {
		l.at, l.err = e.Keys.ForLatch(key)
		l.calls = e.Ledger(l.at.Calls)
	}
	return l
}

// Name returns the name of the latch, as the program gave it to Client.Latch.
func (l *Latch) Name() string { return engine.Made(l).name }

// Option is an option of TrySetCount, for example ExpiresIn.
type Option func(*settings)

type settings struct {
	life time.Duration
	set  bool
}

// ExpiresIn makes the latch expire d after it was set, if its count is not 0 by then. d must be at least 1
// ms. When the latch expires, waiters get ErrDeleted within 1.25 s. Without ExpiresIn, a latch lasts until
// its count is 0, or until somebody deletes it.
func ExpiresIn(d time.Duration) Option {
	return func(s *settings) { s.life, s.set = d, true }
}

// TrySetCount sets the count to n if the latch is not set. It reports whether this call has set the count.
// n is at least 1. The latch is not set if nobody has set it yet, if its count has become 0, if it has
// expired, or if somebody has deleted it. If Redis does not answer within 3 s, the error matches
// ErrUnavailable.
//
// If ctx ends before Redis has answered, the error matches ctx's error. If the request was sent but not
// answered, the error also matches ErrUnknown: the request may have set the latch, or may still set it
// later. Delete returns the same errors, but waits for Redis as long as ctx allows.
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
// does nothing and returns 0. Each call counts once, even if Holdfast sent its request again because the
// answer was lost.
//
// If ctx is cancelled, CountDown goes on, so that a deferred CountDown is always right. If Redis does not
// answer within 5 s, CountDown returns an error that matches ErrUnknown, and goes on in the background for
// up to 5 minutes. After this error, do not call CountDown again for the same work. If the request arrives
// after somebody has set the latch again, the request counts the new count down. So if you want to set a
// latch again within minutes, use a new name each time.
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

// Count returns the count of the latch. If the latch is not set, Count returns 0. Count asks Redis's
// master.
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

// Delete deletes the latch, even if its count is not 0, and reports whether the latch was set. Callers
// that wait for the latch get ErrDeleted.
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
