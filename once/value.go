// Value and Do: the work of one key.

package once

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/pause"
)

// Value returns the result of a key. If Redis has no result for the key, and if no other caller is doing
// the work, Value calls work and keeps the result that work returns. While the result is kept, all callers
// that use the key get this result. Callers that wait, in any process, get the result as soon as it is
// stored.
//
// # Whose context
//
// work runs on the goroutine of the caller. The context of work is derived from this caller's ctx. The
// context has the same values as ctx, and ends when ctx ends. The context also ends when the hold on the
// key is lost, with a cause that says why, for example ErrLost. If the ctx of the caller that does the
// work ends, no other call fails: the next caller does its own work, from the beginning. If work must not
// end when its caller's ctx ends, call Value with a context that has a deadline and is derived from
// context.WithoutCancel(ctx). If the ctx of a waiting caller ends, that caller returns at once, and the
// other callers go on waiting.
//
// # Results and errors
//
// The caller that did the work gets the result that work returned, even if the result could not be stored.
// If the result could not be stored, the caller also gets an error. Each other caller gets its own copy of
// the result, which the Codec decodes from the stored bytes.
//
//   - If work returns an error, the caller gets that error unchanged. Without KeepErrors the error is not
//     kept, and the next caller, which may be waiting already, does its own work. If work panics, the next
//     caller also does its own work.
//   - ErrMismatch: another call has used the key with another payload (see Fingerprint).
//   - ErrWorkFailed: the work of another call has failed, and its error is kept (see KeepErrors).
//   - ErrBusy: another caller was doing the work until ctx ended or, with OnBusy(Fail), at the moment when
//     Redis was asked.
//   - ErrTooLarge, or an error of Codec.Encode: the work is done, but its result was not stored.
//   - An error of Codec.Decode: another caller has done the work, but the Codec cannot decode its result.
//   - ErrLost, ErrExpired, ErrMaxHold or ErrClosed: the hold on the key ended before the result was stored.
//     Another caller may have done the work too.
//   - ErrUnknown: the work is done, but Redis did not answer, so it is not known whether the result is
//     stored. Until the end of the lease, Holdfast goes on trying to store the result.
//
// Other errors are errors that the Lock of a Locker returns too, such as ErrUnavailable, ErrClosed,
// ErrWrongType or ErrOutOfMemory. If work calls Value with its own key and its own context, this inner
// call would wait for the work that makes it. So the inner call fails with ErrBadArgument while the hold
// on the key lasts.
//
// # Work that outlives its hold
//
// If work is detached from its caller's ctx, or ignores the end of its context, it may go on after its
// hold on the key is lost. No caller waits for such work, even in the same process. The next caller gets a
// result that another caller has stored. If there is no such result, the next caller does the work itself.
func Value[T any](ctx context.Context, o *Once, key string, work func(ctx context.Context) (T, error)) (T, error) {
	var value T
	if work == nil {
		return value, o.fail("run", key, errNoWork)
	}
	found, err := o.run(ctx, key, func(ctx context.Context) (encode, error) {
		var err error
		value, err = work(ctx)
		return func() ([]byte, error) { return encoded(o.codec, value) }, err
	})
	if found == nil {
		return value, err
	}
	if err := o.codec.Decode([]byte(found.data), &value); err != nil {
		return value, o.fail("decode", key, err)
	}
	return value, nil
}

// Do is the same as Value, but for work that has no result.
func Do(ctx context.Context, o *Once, key string, work func(ctx context.Context) error) error {
	if work == nil {
		return o.fail("run", key, errNoWork)
	}
	_, err := o.run(ctx, key, func(ctx context.Context) (encode, error) {
		return func() ([]byte, error) { return nil, nil }, work(ctx)
	})
	return err
}

// Token returns the fencing token of the work to which ctx belongs. This token is greater than the token
// of every earlier work of the same key. ctx must be the context that Value or Do gave to the work, or a
// context that is derived from it. For any other context Token returns 0. If the work sends its token with
// each write, the resource that the work writes to can refuse the writes of earlier work.
func Token(ctx context.Context) int64 {
	token, _ := ctx.Value(tokenKey{}).(int64)
	return token
}

type tokenKey struct{}

type encode func() ([]byte, error)

type work func(ctx context.Context) (encode, error)

// run returns the result that was found, or nil if this caller was to do the work, or failed.
func (o *Once) run(ctx context.Context, key string, w work) (*result, error) {
	r, err := o.resource(key)
	if err != nil {
		return nil, o.fail("run", key, err)
	}
	if l := hold.Carried(ctx, o.engine, r); l != nil && l.Err() == nil {
		return nil, o.fail("run", key, fmt.Errorf("it is called by its own work, and would wait for itself: %w", errs.BadArgument))
	}
	c := &call{once: o, key: key, resource: r, work: w}
	var found *result
	if o.busy == Fail {
		found, _, err = c.ask(ctx)
	} else {
		found, err = c.share(ctx)
	}
	if found != nil && found.failed {
		return nil, o.fail("run", key, fmt.Errorf("%w: %s", errs.WorkFailed, found.data))
	}
	return found, err
}

type call struct {
	once     *Once
	key      string
	resource *resource
	work     work
	lead     *engine.Lead // it leads the callers of this process; nil: it shares nothing
}

// share asks together with the other callers of this process: one of them asks, or does the work,
// and all get what comes of it.
func (c *call) share(ctx context.Context) (*result, error) {
	sort := c.resource.payload
	if c.once.pausable {
		sort += " pausable" // the others do not wait for the end of a pause
	}
	lead, answer, err := c.once.engine.Join(ctx, c.resource.at.Record, sort)
	switch {
	case err != nil:
		return nil, c.once.fail("run", c.key, errs.Ended(ctx, err))
	case lead == nil:
		return answer.(*result), nil
	}
	c.lead, c.resource.busy = lead, func() { lead.Says(errs.Busy) }
	defer lead.Leave() // unless it has given an answer; even if the work panics
	found, kept, err := c.ask(ctx)
	if found != nil {
		kept = found
	}
	if kept != nil {
		lead.Tell(kept)
	}
	return found, err
}

// ask asks Redis, and does the work if it is granted. It returns the result that was found, or the
// one that was made and kept.
func (c *call) ask(ctx context.Context) (found, kept *result, err error) {
	l, err := c.lock(ctx)
	for err == nil && c.once.pausable {
		var again bool
		if again, err = c.heedPause(ctx, l); !again {
			break
		}
		l, err = c.lock(ctx)
	}
	switch {
	case errors.Is(err, hold.Concluded):
		return c.resource.found, nil, nil
	case err != nil:
		return nil, nil, c.once.fail("run", c.key, err)
	}
	kept, err = c.do(ctx, l)
	return nil, kept, err
}

// heedPause returns false if the work may begin, under the lease. If the Once is paused, it gives the lease back, waits for the
// end of the pause, and returns true.
func (c *call) heedPause(ctx context.Context, l *hold.Lease) (again bool, err error) {
	e := c.once.engine
	key := e.Keys.PauseAt(c.once.mapped)
	p, err := pause.Found(ctx, e, key, l, c.once.busy == Fail)
	if err == nil && !p.Lasts() {
		return false, nil
	}
	if err == nil {
		c.says(p.Err())
		err = pause.Wait(ctx, e, key, p)
	}
	if err == nil {
		c.says(nil)
	}
	return err == nil, errs.Ended(ctx, err)
}

// says lets the callers that share this call's answer know why there is none yet.
func (c *call) says(reason error) {
	if c.lead != nil {
		c.lead.Says(reason)
	}
}

// lock asks Redis for the work, or for its result.
func (c *call) lock(ctx context.Context) (*hold.Lease, error) {
	return hold.Request{
		Engine:   c.once.engine,
		Resource: c.resource,
		Settings: c.once.hold,
		Try:      c.once.busy == Fail,
		Afresh:   true,
	}.Acquire(ctx)
}

// do does the work under the lease, and writes its result. It returns the result if it was kept.
func (c *call) do(ctx context.Context, l *hold.Lease) (kept *result, err error) {
	returned := false
	c.says(errs.Busy)
	stays := c.leadsUnder(l)
	defer func() {
		if !returned {
			stays()
			_ = l.Release(ctx) // and the panic, or Goexit, goes on after this
		}
	}()
	held := l.Context(ctx)
	encode, failure := c.work(context.WithValue(held, tokenKey{}, l.Token()))
	keep := c.once.keep
	if failure == nil {
		kept, err = c.encoded(encode)
	} else if c.once.keepErrors > 0 && held.Err() == nil {
		keep = c.once.keepErrors
		kept = &result{failed: true, data: cut(failure.Error())}
	}
	if kept != nil {
		c.resource.conclusion.Store(&conclusion{result: kept, token: l.Token(), keep: keep})
	}
	returned = true
	stays()
	released := l.Release(ctx)
	if released != nil {
		released = c.unkept(released, kept != nil)
		kept = nil
	}
	if failure == nil {
		failure = err
	}
	return kept, together(failure, released)
}

// leadsUnder lets the call lead the callers of its process for no longer than the lease lasts: if
// it is lost while the work goes on, another caller leads, and asks Redis, which alone knows who
// works now. The returned function ends that. It is called before the lease is released.
func (c *call) leadsUnder(l *hold.Lease) (stays func() bool) {
	if c.lead == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(l.Context(context.Background()), c.lead.Leave)
}

// encoded returns the result, unless it cannot be kept.
func (c *call) encoded(encode encode) (*result, error) {
	data, err := encode()
	switch {
	case err != nil:
		return nil, c.once.fail("encode", c.key, err)
	case len(data) > c.once.maxSize:
		return nil, c.once.fail("keep", c.key, fmt.Errorf("%w: %d bytes, at most %d", errs.TooLarge, len(data), c.once.maxSize))
	}
	return &result{data: string(data)}, nil
}

// unkept returns the error of a release. If a result was to be written, that failed, or Redis did not
// say.
func (c *call) unkept(err error, result bool) error {
	if !result {
		return c.once.fail("release", c.key, err)
	}
	for _, known := range []error{errs.Lost, errs.MaxHold, errs.Closed, errs.NotReplicated, errs.Unknown} {
		if errors.Is(err, known) {
			return c.once.fail("keep", c.key, err)
		}
	}
	return c.once.fail("keep", c.key, fmt.Errorf("%w: %w", errs.Unknown, err))
}

// together returns the errors of the work and of the release as one error. If both say that the hold
// was lost, or how else it ended, the work's error says it alone.
func together(failure, released error) error {
	switch {
	case released == nil:
		return failure
	case failure == nil:
		return released
	}
	for _, end := range []error{errs.Lost, errs.MaxHold, errs.Closed} {
		if errors.Is(failure, end) && errors.Is(released, end) {
			return failure
		}
	}
	return fmt.Errorf("%w; %w", failure, released)
}

// longestText is how many bytes of an error's text are kept.
const longestText = 4 << 10

// cut returns the text, cut to what is kept of it.
func cut(text string) string {
	if len(text) <= longestText {
		return text
	}
	return strings.ToValidUTF8(text[:longestText], "")
}

var errNoWork = fmt.Errorf("the work is nil: %w", errs.BadArgument)

var errNil = fmt.Errorf("the Once is nil: %w", errs.BadArgument)
