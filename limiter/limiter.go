// Package limiter bounds how many units all processes together take in a given time. A unit is whatever
// the program counts, such as one call of an API or one request of a user. If a caller comes too early,
// Allow refuses the call, and Wait makes the caller wait. Waiting callers are served in the order in
// which their requests reached Redis.
//
// Programs make a Limiter with Client.Limiter:
//
//	stripe := client.Limiter("stripe", limiter.Rate(100, time.Minute), limiter.Burst(20))
//	if err := stripe.Wait(ctx, 1); err != nil {
//		return err
//	}
//
// # How it counts
//
// A limiter counts by GCRA, the generic cell rate algorithm. A script in Redis counts, by the clock of
// the Redis server. For each limit Redis stores one number, the debt. The debt is the time until the
// limit is full again if nobody takes units. With Rate(n, d), each unit that is taken adds d/n to the
// debt, and the debt shrinks as time passes. With Burst(b), a caller may take a unit at once if the
// debt, with the d/n of this unit added, is at most b*d/n. If the caller must wait, the script adds d/n
// for each of its units to the debt nevertheless, and answers to the microsecond when the caller may use
// the units. The caller sleeps until then, and does not ask again. For this reason callers of all
// processes are served in the order in which their requests reached Redis.
//
// Each limit has one key in Redis. The key expires when the limit is full again or, if Set has set a
// rate, 30 days after that. docs/limiter.md says what a limiter promises, and what it costs.
package limiter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/lease"
)

const (
	kind = "limiter" // for errors, spans and metrics

	// most is the greatest number of units of a call: the scripts count in doubles.
	most = 1 << 40
)

// Limiter bounds how many units are taken in a given time. All Limiters of the same name, in all
// processes, share one limit.
//
// Any number of goroutines may use one Limiter. Make one Limiter for each name, keep it, and get the
// limits of keys from it by For. Do not make a new one for each call, because a Limiter remembers the
// rate that Set has set, and the units that it has taken in advance for its process by Share.
type Limiter struct {
	engine *engine.Engine
	name   string
	mapped string // its name in Redis
	at     keys.Limit
	alone  bool // it is the limit that Set changes, and no key of it
	family *family
	err    error // why it cannot be used
}

// Semaphore has the methods of a PermitSemaphore that a Limiter calls for Concurrent.
type Semaphore interface {
	Locker(n int) lease.Locker
	LeaseFrom(ctx context.Context) (l *lease.Lease, ok bool)
	Permits(ctx context.Context) (int, error)
	SetPermits(ctx context.Context, n int) error
}

// New returns the limiter of that name. Programs call Client.Limiter, which calls New. mapped is the
// name as it is stored in Redis. If options has Concurrent, New calls semaphore to make the
// PermitSemaphore of Concurrent. New does no I/O. If an argument is wrong, every call on the returned
// Limiter returns the error.
func New(e *engine.Engine, name, mapped string, semaphore func() Semaphore, options []Option) *Limiter {
	l := &Limiter{engine: e, name: name, mapped: mapped, alone: true, family: new(family)}
	if l.err = e.Broken(); l.err == nil {
		l.at, l.err = e.Keys.ForLimit(mapped)
	}
	var err error
	if l.family.settings, err = newSettings(options); l.err == nil {
		l.err = err
	}
	l.family.root = l
	if l.family.concurrent > 0 && l.err == nil {
		l.family.permits = semaphore()
	}
	return l
}

// For returns the limit of one key, such as a user or an address. Each key has its own limit, and all
// keys have the rate of the Limiter, except a key that has got its own rate by Set. For does no I/O, so
// a program may call For anew for each request. The returned limit has the name "<name>:<key>". In the
// name that is stored in Redis, each "%" of the key is written "%25", and each ":" of the key is written
// "%3A". The key may be any bytes, but not empty.
func (l *Limiter) For(key string) *Limiter {
	l = engine.Made(l)
	of := &Limiter{engine: l.engine, name: l.name + ":" + key, family: l.family, err: engine.Usable(l.engine, l.err)}
	if of.err == nil {
		of.mapped, of.err = keys.LimitOf(l.mapped, key)
	}
	if of.err == nil {
		of.at, of.err = l.engine.Keys.ForLimit(of.mapped)
	}
	return of
}

// Name returns the name that the program gave to Client.Limiter. If For has made the limiter, Name
// returns "<name>:<key>".
func (l *Limiter) Name() string { return engine.Made(l).name }

// Decision is the answer of Allow. It says whether the call is allowed, and has the state of the limit
// directly after the call.
type Decision struct {
	// Allowed is true if the caller may go on, and false if Allow refused the call.
	Allowed bool
	// Remaining is how many units callers could take at once directly after this call of Allow.
	Remaining int
	// RetryAfter is the time until Allow would allow the same call, if no other caller takes units in
	// the meantime. RetryAfter is 0 if the call was allowed. RetryAfter is also 0 for a refused call if
	// Redis's answer to the call was lost, and Allow would allow the same call by now.
	RetryAfter time.Duration
	// ResetAfter is the time until the limit is full again, if no other caller takes units in the
	// meantime.
	ResetAfter time.Duration

	// Rate, Per and Burst are the rate in force: Rate units in each Per, and at most Burst units at
	// once. If Set has set a rate, that rate is in force. Otherwise the rate of the options is in force.
	Rate  int
	Per   time.Duration
	Burst int
}

// Allow takes n units if the limit has n units now. The field Allowed of the Decision says whether Allow
// took them. Allow does not wait for units. A call of Allow that is refused or fails takes nothing. If
// goroutines of this process call Allow for one unit while the process is asking Redis for others, the
// process sends their calls together, and the calls are allowed in the order in which they came.
//
// If Redis does not answer within 3 s, or before ctx's deadline, the error matches ErrUnavailable. If
// the Limiter has OnUnavailable(limiter.Allow), the call is allowed instead, without an error, and all
// other fields of the Decision are zero. If n is less than 1 or greater than the burst, the error
// matches ErrBadArgument.
func (l *Limiter) Allow(ctx context.Context, n int) (Decision, error) {
	if err := l.check(n); err != nil {
		return Decision{}, l.fail("take from", err)
	}
	ctx, span := l.engine.Telemetry.Acquire(ctx, kind, l.name)
	a, attempts, err := l.allow(ctx, int64(n))
	told := err
	if err == nil && a.status != conn.Done {
		told = errs.Busy
	}
	outcome := telemetry.OutcomeOf(told, telemetry.OutcomeAcquired)
	d, err := l.decision(a, int64(n), err)
	if err != nil {
		err = l.fail("take from", errs.Ended(ctx, err))
	}
	span.End(telemetry.Acquired{Outcome: outcome, Attempts: attempts, Err: err})
	return d, err
}

// decision puts an answer into words.
func (l *Limiter) decision(a answer, n int64, err error) (Decision, error) {
	if err != nil {
		if l.passes(err) {
			return Decision{Allowed: true}, nil
		}
		return Decision{}, err
	}
	d := Decision{
		Allowed:    a.status == conn.Done,
		Remaining:  int(a.left()),
		ResetAfter: max(a.debt, 0),
		Rate:       int(a.rate.count),
		Per:        time.Duration(a.rate.period) * time.Microsecond,
		Burst:      int(a.rate.burst),
	}
	if !d.Allowed {
		d.RetryAfter = a.until(n)
	}
	return d, nil
}

// allow takes n units with others of this process if they may be among those that it keeps; otherwise alone, since
// a round takes as much of what its callers want as there is, and some of it would be for nobody.
func (l *Limiter) allow(ctx context.Context, n int64) (answer, int, error) {
	if n <= max(int64(l.family.share), 1) {
		return l.pooled(ctx, n)
	}
	ctx, cancel := engine.Bounded(ctx)
	defer cancel()
	q := request{id: newID(), units: n, least: n}
	a, err := l.takeNow(ctx, &q)
	return a, q.attempts, err
}

// takeNow is take for calls that do not wait. If their answer was incomplete, it asks by which rate it was made. A bundle
// does not answer how many units were taken, so only a request for all or none may join one.
func (l *Limiter) takeNow(ctx context.Context, q *request) (answer, error) {
	if q.script = takeScript; q.units == q.least {
		q.script = allowScript
	}
	a, err := l.take(ctx, q)
	if err != nil {
		return a, err
	}
	if q.units == q.least && a.status == conn.Done {
		a.units = q.units
	}
	if a.part {
		a.rate, err = l.inForce(ctx, a.rate.rev)
	}
	if err != nil && a.status == conn.Done {
		l.settle(q.id, a.units, 0)
	}
	return a, err
}

// request is one call of take.lua.
type request struct {
	script   *conn.Script
	id       string
	units    int64
	least    int64
	patience time.Duration // how long the caller would wait
	fresh    time.Duration // how old what is known of the rate may be; 0: heed

	attempts int
}

// newID returns an id that no other call has: eight letters and digits. Three of some 10^12 are looked at.
func newID() string {
	const least, end = 78_364_164_096, 2_821_109_907_456 // 36^7, 36^8
	return strconv.FormatUint(least+rand.Uint64N(end-least), 36)
}

// take asks for units. If its answer does not say that they are taken, none stay taken. If ctx ends first, the error
// matches ctx's.
func (l *Limiter) take(ctx context.Context, q *request) (answer, error) {
	if err := l.engine.Begin(); err != nil {
		return answer{}, err
	}
	defer l.engine.Done()
	known, err := l.known(ctx, q.fresh)
	if err != nil {
		return answer{}, err
	}
	call := &conn.Call{
		Script: q.script,
		Keys:   []string{l.at.Key},
		Args: []any{q.id, q.units, q.least, min(q.patience, longest).Microseconds(),
			known.String(), known.unit(), known.unit() * float64(known.burst)},
	}
	if err := l.run(ctx, call, q); err != nil {
		return answer{}, err
	}
	a := answerIn(call, known)
	if l.alone && !a.part {
		l.family.learn(a.rate)
	}
	return a, nil
}

// run runs the call of a request. If the caller does not learn whether units were taken, they are given
// back.
func (l *Limiter) run(ctx context.Context, call *conn.Call, q *request) error {
	err := l.engine.Conn.Run(ctx, call)
	q.attempts += call.Attempts
	taken := err == nil && call.Status() == conn.Done
	if notAfter, unheard := call.Outstanding(); unheard && !taken && q.units > 0 {
		l.settle(q.id, q.units, notAfter)
	}
	if err == nil && call.Status() == tooMany {
		err = beyond(q.least)
	}
	return err
}

// beyond returns the error of a call for more than the burst.
func beyond(n int64) error {
	return fmt.Errorf("%d units, more than the burst: %w", n, errs.BadArgument)
}

// settleLimit is how long units are given back in the background, if Redis does not answer.
const settleLimit = time.Minute

// settle gives units back in the background, until no request can take them any more.
func (l *Limiter) settle(id string, units, notAfter int64) {
	l.engine.Settle(notAfter, settleLimit, func(ctx context.Context) (*conn.Call, error) {
		call := l.giveBack(id, units, false)
		return call, l.engine.Conn.Run(ctx, call)
	})
}

// giveBack returns the call that gives units back: with anyway even if others have taken some
// since, otherwise only if nobody has.
func (l *Limiter) giveBack(id string, units int64, anyway bool) *conn.Call {
	since := 0
	if anyway {
		since = 1
	}
	return &conn.Call{
		Script:  giveBackScript,
		Keys:    []string{l.at.Key},
		Args:    []any{id, units, since, l.family.revision(l)},
		Cleanup: true,
	}
}

// passes reports whether a call that failed with err goes on as if there were no limit.
func (l *Limiter) passes(err error) bool {
	return l.family.unavailable == Allow && errors.Is(err, errs.Unavailable)
}

// late returns the error of a caller whose units come only after that time.
func late(after time.Duration) error {
	return hold.BusyFor(after, fmt.Errorf("%w: the turn would come in %v", errs.Busy, after.Round(time.Millisecond)))
}

// check returns what is wrong with a call for n units; nil if nothing is.
func (l *Limiter) check(n int) error {
	if err := l.usable(); err != nil {
		return err
	}
	if n < 1 || int64(n) > most {
		return fmt.Errorf("%d units: %w", n, errs.BadArgument)
	}
	return nil
}

func (l *Limiter) fail(op string, err error) error {
	_, err = lease.Of(nil, err)
	return errs.Call(op, kind, l.Name(), err)
}

// usable returns nil, or why l cannot be used.
func (l *Limiter) usable() error {
	l = engine.Made(l)
	return engine.Usable(l.engine, l.err)
}
