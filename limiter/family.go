// What the limits of one Limiter have in common: the options, and what their process knows of the rate.

package limiter

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/line"
)

// heed is within how long a process learns of a rate that Set has set, if it gets no message.
const heed = line.PollBound

// family is what the limits of one Limiter have in common.
type family struct {
	settings
	root    *Limiter // the limit without a key, at which Set writes
	permits Semaphore

	mu      sync.Mutex
	set     rate      // what root was found to have last; rev 0: nobody has set it
	looked  time.Time // when; zero: never
	looking bool      // somebody looks
	shares  map[string]*share
	watched watched

	concurrency concurrency
}

// known returns the rate with which l asks: for a key, that of the Limiter as this process knows it. The limit
// without a key has what was set beside its debt, so it asks by the options.
func (l *Limiter) known(ctx context.Context, fresh time.Duration) (rate, error) {
	if l.alone {
		return l.family.rate, nil
	}
	return l.rateInForce(ctx, cmp.Or(fresh, heed))
}

// rateInForce returns the rate of the Limiter as this process knows it. If that is older than fresh, one caller
// asks Redis, and the others use the old one.
func (l *Limiter) rateInForce(ctx context.Context, fresh time.Duration) (rate, error) {
	f := l.family
	f.mu.Lock()
	first := f.looked.IsZero()
	if !first && (f.looking || time.Since(f.looked) < fresh) {
		defer f.mu.Unlock()
		return f.inForce(), nil
	}
	f.looking = true
	before := f.set.rev
	f.mu.Unlock()
	a, err := f.root.look(ctx, 0)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looking = false
	if err != nil {
		return f.inForce(), err
	}
	if f.looked = time.Now(); f.set.rev == before {
		f.set = a.rate // Redis may have forgotten what was set last
	}
	return f.inForce(), nil
}

// inForce returns the rate that was set at rev, by which a call of l was answered.
func (l *Limiter) inForce(ctx context.Context, rev int64) (rate, error) {
	f := l.family
	f.mu.Lock()
	set := f.set
	f.mu.Unlock()
	if set.rev == rev {
		return set, nil
	}
	a, err := l.look(ctx, 0)
	return a.rate, err
}

// inForce returns what was set, or else the option. The caller holds the mutex.
func (f *family) inForce() rate {
	if f.set.rev > 0 {
		return f.set
	}
	return f.rate
}

// revision returns the rev with which l asks.
func (f *family) revision(l *Limiter) int64 {
	if l.alone {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.set.rev
}

// anew is a freshness that nothing known has: the rate is asked for.
const anew = time.Nanosecond

// look asks for the state of the limit, and keeps a rate that was set for a month more. What is known of the rate may
// be as old as fresh.
func (l *Limiter) look(ctx context.Context, fresh time.Duration) (answer, error) {
	q := request{script: takeScript, id: newID(), fresh: fresh}
	return l.take(ctx, &q)
}

// Set sets the rate of the limiter for all processes and all keys. It takes the options Rate and Burst,
// which Client.Limiter takes too. The rate is in force until the next Set, but Redis forgets the rate if
// no process uses the limiter for 30 days. Units that were taken before the Set stay taken.
//
// The limit of the Limiter itself, without a key, has the new rate from the next call on. For the limits
// of keys, and for calls that wait, other processes learn of the new rate within 1.25 s. With Share, a
// process that refused a call just before the Set may go on to refuse calls for 1.25 s more. Calls that
// wait keep their order, and get new times. If Set is called on a limit that For has returned, the new
// rate is for that key only, until the next Set on the Limiter itself. If several calls of Set overlap, the
// rate of one of them counts. Set sends two requests.
//
// If ctx ends before Redis has answered, the error matches ctx's error. If Redis may have set the rate
// nevertheless, the error also matches ErrUnknown.
func (l *Limiter) Set(ctx context.Context, options ...Option) error {
	if err := l.set(ctx, options); err != nil {
		return l.fail("set", err)
	}
	return nil
}

func (l *Limiter) set(ctx context.Context, options []Option) error {
	if err := l.usable(); err != nil {
		return err
	}
	s, err := newSettings(options)
	if err != nil {
		return err
	}
	if s.beyondRate() {
		return fmt.Errorf("an option that is neither Rate nor Burst: %w", errs.BadArgument)
	}
	return l.write(ctx, s.rate)
}

// write sets the rate in Redis.
func (l *Limiter) write(ctx context.Context, r rate) error {
	if err := l.engine.Begin(); err != nil {
		return err
	}
	defer l.engine.Done()
	found, err := l.look(ctx, anew) // a key may not have the rate of the last Set yet
	if err != nil {
		return errs.Ended(ctx, err)
	}
	call := &conn.Call{
		Script: setScript,
		Keys:   []string{l.at.Key},
		Args:   []any{r.unset(), l.engine.Publish(ctx), l.at.Channel, found.rate.rev},
	}
	err = l.engine.Conn.Run(ctx, call)
	if _, unheard := call.Outstanding(); err != nil && unheard {
		err = fmt.Errorf("%w: %w", errs.Unknown, err)
	}
	if err != nil {
		return errs.Ended(ctx, err)
	}
	switch {
	case call.Status() != conn.Done:
		_, _ = l.look(ctx, 0) // to learn of the rate that was set last, or within heed
	case l.alone:
		r.rev = call.Result()
		l.family.learn(r)
	}
	l.family.unbar(l)
	return nil
}

// learn takes in the rate of root, if it is newer.
func (f *family) learn(r rate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.rev > f.set.rev {
		f.set = r
	}
}
