// Package semaphore has two kinds of semaphore. A Semaphore only counts its permits. A PermitSemaphore
// leases its permits, so that a permit is free again when its holder has died and the lease is over. In
// Redis, the two kinds have the layouts of Redisson's RSemaphore and RPermitExpirableSemaphore. So Go and
// Java processes share the permits, and wake each other.
//
// Programs make a Semaphore with Client.Semaphore, and a PermitSemaphore with Client.PermitSemaphore.
package semaphore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

const (
	kind = "semaphore" // for errors, spans and metrics

	// most is the greatest number of permits: the scripts count in doubles.
	most = 1 << 53
)

// Semaphore is a number of permits that nobody owns. All callers that use the same name share the permits.
// If a process dies with a permit, the permit never comes back. Anybody may release any number of permits.
// If that is a problem for your program, use a PermitSemaphore.
//
// A Semaphore holds no state, so any number of goroutines may use one Semaphore. Each call takes effect
// once, even if Holdfast had to send its request several times.
type Semaphore struct {
	engine *engine.Engine
	name   string
	at     keys.Semaphore
	calls  engine.Ledger
	err    error // why it cannot be used
}

// New returns the Semaphore of the given name. key is the key of the semaphore in Redis. New does no I/O.
// If an argument is wrong, every call on the semaphore returns the error.
func New(e *engine.Engine, name, key string) *Semaphore {
	s := &Semaphore{engine: e, name: name}
	if s.err = e.Broken(); s.err == nil {
		s.at, s.err = e.Keys.ForSemaphore(key)
		s.calls = e.Ledger(s.at.Calls)
	}
	return s
}

// Name returns the name of the semaphore, as the program gave it to Client.Semaphore.
func (s *Semaphore) Name() string { return engine.Made(s).name }

// Acquire waits until n permits are free at the same time, and takes them. If n is 0, Acquire takes
// nothing and returns at once. A call for fewer permits may overtake a call that waits for more permits.
// Within one process, a call that has waited for a second is not overtaken any more.
//
// Acquire waits as long as ctx allows, even if nobody has set the semaphore yet. If ctx ends first,
// Acquire takes nothing, and the error matches ctx's error. The error also matches ErrBusy if too few
// permits were free, or ErrNoPermits if nobody has ever set the semaphore. If Acquire has sent a request
// and got no answer, Holdfast undoes the request in the background, exactly once. If Redis returns a
// transient error, Acquire tries again until ctx ends. If the error matches ErrWrongType, ErrOutOfMemory,
// ErrDenied or ErrBadArgument (n < 0), Acquire returns the error at once.
//
// If Holdfast knows that the total number of permits is less than n, Acquire returns at once, and the
// error matches ErrNoPermits. Holdfast knows the total number if TrySetPermits has set it to more than 0,
// or if AddPermits has made the semaphore. Holdfast forgets the total number a week after the last call on
// the semaphore. Holdfast never knows the total number if a Java program has set the semaphore, or if the
// semaphore ever had 0 permits in all. If Holdfast does not know the total number, Acquire waits, because
// somebody may release more permits than were taken.
func (s *Semaphore) Acquire(ctx context.Context, n int) error {
	return s.acquire(ctx, "acquire", n, func(ctx context.Context, a *acquisition) error {
		started := time.Now()
		out, err := s.engine.Lines.Wait(ctx, &a.waiting)
		if out.Waited {
			a.waited = time.Since(started)
		}
		if errors.Is(err, errs.Busy) && a.unset && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", a.refused(nil), ctx.Err())
		}
		return err
	})
}

// TryAcquire is Acquire without the wait. TryAcquire sends one request, and does not subscribe to
// messages. If too few permits are free, the error matches ErrBusy. The error also matches ErrBusy if
// another call in this process wants more permits than this call, and has waited for more than a second.
// If nobody has ever set the semaphore, or if Holdfast knows that the total number of permits is less than
// n, the error matches ErrNoPermits. If Redis does not answer within 3 s, or before ctx's deadline, the
// error matches ErrUnavailable.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) error {
	ctx, cancel := engine.Bounded(ctx)
	defer cancel()
	return s.acquire(ctx, "try acquire", n, func(ctx context.Context, a *acquisition) error {
		if s.engine.Lines.Overtakes(&a.waiting) {
			return errs.Busy
		}
		answer, err := a.Try(ctx, line.Ask{})
		if err == nil && !answer.Granted {
			return a.refused(errs.Busy)
		}
		return err
	})
}

func (s *Semaphore) acquire(ctx context.Context, op string, n int, how func(context.Context, *acquisition) error) error {
	if err := s.check(n); err != nil {
		return s.fail(op, err)
	}
	if n == 0 {
		return nil
	}
	ctx, span := s.engine.Telemetry.Acquire(ctx, kind, s.name)
	a := &acquisition{semaphore: s, n: n, waiting: waiting(kind, s.at.Permits, s.at.Channel, n)}
	a.waiting.Kind, a.waiting.Asker = span.Kind(), a
	err := a.prepare(ctx)
	if err == nil {
		err = how(ctx, a)
	}
	outcome := telemetry.OutcomeOf(err, telemetry.OutcomeAcquired) // without the cause of ctx
	if err != nil {
		err = s.fail(op, errs.Ended(ctx, s.foreign(ctx, err)))
	}
	span.End(telemetry.Acquired{
		Outcome:  outcome,
		Attempts: a.attempts,
		Waited:   a.waited,
		Err:      err,
	})
	return err
}

// acquisition is a call of Acquire or TryAcquire under way.
type acquisition struct {
	semaphore *Semaphore
	n         int
	waiting   line.Want
	undo      engine.Once

	attempts int
	waited   time.Duration
	unset    bool // the last answer was that there is no such semaphore
}

// prepare makes the call that undoes a try.
func (a *acquisition) prepare(ctx context.Context) error {
	s := a.semaphore
	publish, err := s.engine.Conn.PublishCommand(ctx)
	a.undo = s.call(cancelScript, a.n, publish, s.at.Channel)
	return err
}

// Try implements line.Asker.
func (a *acquisition) Try(ctx context.Context, _ line.Ask) (line.Answer, error) {
	s := a.semaphore
	call, err := s.calls.Try(ctx, s.call(takeScript, a.n), a.undo)
	a.attempts += call.Attempts
	granted := err == nil && call.Status() == conn.Done
	a.unset = false
	if err == nil && !granted {
		switch call.Result() {
		case unset:
			a.unset = true
		case tooMany:
			err = line.ForAll(fmt.Errorf("%d asked for, more than there are in all: %w", a.n, errs.NoPermits))
		}
	}
	return line.Answer{Granted: granted, Held: line.NoKnownEnd}, err
}

// refused returns why there are too few permits: err, or ErrNoPermits if the semaphore was never
// set.
func (a *acquisition) refused(err error) error {
	if !a.unset {
		return err
	}
	return fmt.Errorf("never set, TrySetPermits was not called: %w", errs.NoPermits)
}

// Release gives n permits back. Release does not check who has taken the permits. If nobody has taken
// them, the semaphore has n more permits than before. If n is 0, Release does nothing.
//
// If ctx is cancelled, Release goes on, so that a deferred Release is always right. If Redis does not
// answer within 5 s, Release returns an error that matches ErrUnknown, and goes on in the background for
// up to 5 minutes. After this error, do not call Release again for these permits.
func (s *Semaphore) Release(ctx context.Context, n int) error {
	if err := s.check(n); err != nil {
		return s.fail("release", err)
	}
	if n == 0 {
		return nil
	}
	ctx, span := s.engine.Telemetry.Release(ctx, telemetry.Kind{Name: kind}, s.name)
	err := s.release(ctx, n)
	if err != nil {
		err = s.fail("release", err)
	}
	span.End(telemetry.OutcomeOf(err, telemetry.OutcomeReleased), telemetry.StillHeld, err)
	return err
}

func (s *Semaphore) release(ctx context.Context, n int) error {
	_, err := s.calls.Finish(ctx, func(publish string) engine.Once {
		return s.call(giveScript, n, publish, s.at.Channel, 0)
	})
	return err
}

// TrySetPermits sets the number of permits to n, if nobody has set the semaphore before. It reports
// whether this call has set the number. If Redis does not answer within 3 s, the error matches
// ErrUnavailable.
//
// If ctx ends before Redis has answered, the error matches ctx's error. If the request was sent but not
// answered, the error also matches ErrUnknown: the request may have set the number, or may still set it
// later. AddPermits and Drain return the same errors, but wait for Redis as long as ctx allows.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int) (bool, error) {
	ctx, cancel := engine.Bounded(ctx)
	defer cancel()
	call, err := s.change(ctx, n, func(publish string) engine.Once {
		return s.call(beginScript, n, publish, s.at.Channel)
	})
	if err != nil {
		return false, s.fail("set", s.foreign(ctx, err))
	}
	return call.Status() == conn.Done, nil
}

// AddPermits adds delta to the number of permits. delta may be negative. If it is, the number of free
// permits may become negative too, until callers have released enough permits.
func (s *Semaphore) AddPermits(ctx context.Context, delta int) error {
	_, err := s.change(ctx, max(delta, -delta), func(publish string) engine.Once {
		return s.call(giveScript, delta, publish, s.at.Channel, 1)
	})
	if err != nil {
		return s.fail("add", err)
	}
	return nil
}

// Drain takes all permits that are free, and returns how many permits it has taken.
func (s *Semaphore) Drain(ctx context.Context) (int, error) {
	call, err := s.change(ctx, 0, func(string) engine.Once { return s.call(drainScript) })
	if err != nil {
		return 0, s.fail("drain", err)
	}
	return int(call.Result()), nil
}

// change runs a call that counts once, for as long as ctx allows.
func (s *Semaphore) change(ctx context.Context, n int, call func(publish string) engine.Once) (*conn.Call, error) {
	if err := s.check(n); err != nil {
		return nil, err
	}
	publish, err := s.engine.Conn.PublishCommand(ctx)
	if err != nil {
		return nil, err
	}
	return s.calls.Run(ctx, call(publish))
}

// Available returns how many permits are free. The number may be negative after AddPermits. If nobody has
// set the semaphore, Available returns 0. Available asks Redis's master.
func (s *Semaphore) Available(ctx context.Context) (int, error) {
	if err := s.usable(); err != nil {
		return 0, s.fail("query", err)
	}
	call := &conn.Call{Script: freeScript, Keys: []string{s.at.Permits}}
	if err := s.engine.Conn.Run(ctx, call); err != nil {
		return 0, s.fail("query", err)
	}
	return int(call.Result()), nil
}

func (s *Semaphore) usable() error {
	s = engine.Made(s)
	return engine.Usable(s.engine, s.err)
}

// check returns what is wrong with a call for n permits; nil if nothing is.
func (s *Semaphore) check(n int) error {
	if err := s.usable(); err != nil {
		return err
	}
	return checkCount(n)
}

func checkCount(n int) error {
	if n < 0 || int64(n) > most {
		return fmt.Errorf("%d permits: %w", n, errs.BadArgument)
	}
	return nil
}

func (s *Semaphore) call(script *conn.Script, args ...any) engine.Once {
	return engine.Once{Script: script, Key: s.at.Permits, Keys: []string{s.at.All}, Args: args}
}

// foreign adds to err what is stored at the semaphore's key, if that is not a number.
func (s *Semaphore) foreign(ctx context.Context, err error) error {
	s = engine.Made(s)
	return s.engine.Foreign(ctx, engine.Number, s.at.Permits, err)
}

func (s *Semaphore) fail(op string, err error) error {
	return errs.Call(op, kind, s.Name(), err)
}

// waiting returns how to wait for n permits. The waiters for the same number stand in one line, so
// that a permit that is enough for one line does not wake another in vain.
func waiting(kind, key, channel string, n int) line.Want {
	group := "holdfast_" + kind + ":" + key // no name begins like this
	return line.Want{
		Key:     group + "\x00" + strconv.Itoa(n),
		Channel: channel,
		Grant:   line.Shared,
		Weight:  n,
		Group:   group,
	}
}
