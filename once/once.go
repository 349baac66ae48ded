// Package once does work once for a key, in all processes together, and gives the result to every
// caller. It is for requests with an idempotency key, and for filling a cache. The package also has
// Tick, which chooses one winner for each time of a schedule.
//
// Programs make a Once with Client.Once, and call Value or Do with it:
//
//	charges := client.Once("charge", once.Fingerprint(body))
//	receipt, err := once.Value(ctx, charges, idempotencyKey, func(ctx context.Context) (Receipt, error) {
//		return charge(ctx, order)
//	})
//
// # What a key goes through
//
//	nothing   the next caller does the work
//	under way one caller does it, and holds the key by a lease that is renewed. If its process dies,
//	          another caller takes over when the lease is over
//	done      the result is kept, for Keep. Callers get it, and do nothing
//
// # How often the work is done
//
// The work is done at least once. It is done again if a process dies after the work and before its
// result is stored, or if Redis loses its data. If neither happens, and no process is suspended for
// longer than its lease, the work is done exactly once in the time of Keep. Two callers never do the
// work at the same time, on the conditions of a Mutex. docs/guarantees.md has each case. If the work
// must not be done twice, let the resource that it changes check the Token, or claim the work by Tick
// before you do it: then it is done at most once.
package once

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/lockhash"
	"github.com/holdfast-go/holdfast/lease"
)

// Once does the work of each of its keys once, and keeps the result. All callers that use a Once of the
// same name share its keys and results.
//
// A Once has no state in the process: any number of goroutines may use one value, and you may make a new
// value for each call.
type Once struct {
	engine *engine.Engine
	name   string
	mapped string // the name in Redis
	hold   hold.Settings
	settings
	err error // why it cannot be used
}

// New returns the Once of that name. mapped is the name that is stored in Redis. defaults are the lease
// options of the Client. New does no I/O. If an argument is wrong, every call on the Once returns the
// error.
func New(e *engine.Engine, name, mapped string, defaults []lease.Option, options []Option) *Once {
	o := &Once{engine: e, name: name, mapped: mapped, settings: newSettings(options)}
	o.hold = hold.NewSettings(defaults, o.lease)
	if o.err = e.Broken(); o.err == nil {
		o.err = e.Keys.Check(mapped)
	}
	if o.err == nil {
		o.err = o.check()
	}
	return o
}

// Name returns the name that the Once was made with.
func (o *Once) Name() string { return engine.Made(o).name }

// Forget deletes the result of a key, so that the next call does the work again. If there is no result,
// Forget returns nil. If a caller does the work of the key just then, Forget deletes nothing, and its
// error matches ErrBusy. If Redis does not answer within 3 s, or before ctx's deadline, the error
// matches ErrUnavailable, and it is not known whether the result was deleted.
//
// Even after Forget, the key's next token is greater than the earlier ones. If a call in another process
// has read the result before, it may return that result after Forget.
func (o *Once) Forget(ctx context.Context, key string) error {
	r, err := o.resource(key)
	if err == nil {
		err = o.forget(ctx, r)
	}
	if err != nil {
		return o.fail("forget", key, errs.Ended(ctx, err))
	}
	return nil
}

func (o *Once) forget(ctx context.Context, r *resource) error {
	bounded, cancel := engine.Bounded(ctx)
	defer cancel()
	call := &conn.Call{
		Script: forgetScript,
		Keys:   []string{r.at.Record, r.at.Token},
		Args:   []any{tokenLife.Milliseconds()},
	}
	err := o.engine.Conn.Run(bounded, call)
	// Also on an error: the result may be gone.
	o.engine.Unjoin(r.at.Record)
	if err == nil && call.Status() != conn.Done {
		err = errs.Busy
	}
	return err
}

func (o *Once) resource(key string) (*resource, error) {
	switch {
	case o == nil:
		return nil, errNil
	case o.engine.Broken() != nil:
		return nil, o.engine.Broken()
	case o.err != nil:
		return nil, o.err
	}
	at, err := o.engine.Keys.ForOnce(o.mapped, key)
	if err != nil {
		return nil, err
	}
	return &resource{
		name:     o.name + ":" + key,
		at:       at,
		record:   lockhash.Hash(at.Record),
		payload:  o.payload,
		replicas: o.hold.Replicas,
	}, nil
}

func (o *Once) fail(op, key string, err error) error {
	name := key
	if o != nil {
		name = o.name + ":" + key
	}
	return errs.Call(op, kind, name, errs.Bare(err))
}
