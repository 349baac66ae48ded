// Package once does the work of each key once, in all processes together, and gives the result to every
// caller. Use it for requests that have an idempotency key, or to fill a cache. The package also
// implements Client.Tick, which chooses one winner for each time of a schedule.
//
// Programs make a Once with Client.Once, and then call the function Value or Do with that Once:
//
//	charges := client.Once("charge", once.Fingerprint(body))
//	receipt, err := once.Value(ctx, charges, idempotencyKey, func(ctx context.Context) (Receipt, error) {
//		return charge(ctx, order)
//	})
//
// # What a key goes through
//
//	nothing    Redis has nothing for the key. The next caller does the work
//	under way  one caller does the work, and holds the key by a lease that is renewed. If the process of
//	           this caller dies, another caller does the work when the lease is over
//	done       Redis keeps the result, for as long as Keep says. Callers get the result, and no caller does
//	           the work
//
// # How often the work is done
//
// The work of a key is done at least once. It is done again if a process dies after it has done the work
// and before Redis has stored the result, or if Redis loses its data. If neither happens, and if no
// process is suspended for longer than its lease, the work is done exactly once in the time for which
// Redis keeps the result. On the conditions under which a Mutex has only one holder, two callers never do
// the work of one key at the same time. docs/guarantees.md has each case.
//
// There are two ways to protect work that must not be done twice. The resource that the work changes can
// check the Token of the work. Or each caller can claim the work by Client.Tick, and do the work only if
// it has won the tick. The work is then done at most once.
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
// A Once has no state in the process. So any number of goroutines may use one Once, and a program may also
// make a new Once of the same name for each call.
type Once struct {
	engine *engine.Engine
	name   string
	mapped string // the name in Redis
	hold   hold.Settings
	settings
	err error // why it cannot be used
}

// New returns the Once of the given name. mapped is the name as Redis stores it. defaults are the lease
// options of the Client. New does no I/O. If an argument or an option is wrong, every call on the Once
// returns the error.
func New(e *engine.Engine, name, mapped string, defaults []lease.Option, options []Option) *Once {
	o := &Once{engine: e, name: name, mapped: mapped, settings: newSettings(options)}
	o.hold = hold.NewSettings(defaults, o.lease)
	if o.err = e.Broken(); o.err == nil {
		o.err = e.Keys.Check(mapped)
	}
	if o.err == nil {
		o.err = o.check()
	}
	if o.err == nil {
		o.err = o.hold.Check()
	}
	return o
}

// Name returns the name of the Once, as the program gave it to Client.Once.
func (o *Once) Name() string { return engine.Made(o).name }

// Forget deletes the result of a key, so that the next call with the key does the work again. If Redis has
// no result for the key, Forget deletes nothing and returns nil. If a caller is doing the work of the key
// at that moment, Forget deletes nothing, and the error matches ErrBusy. If Redis does not answer within 3
// s, or before ctx's deadline, the error matches ErrUnavailable, and it is not known whether Redis has
// deleted the result.
//
// Even after Forget, the next work of the key gets a greater token than all earlier work of the key. If a
// call in another process has read the result before Forget deletes it, that call may return the result
// after Forget has returned.
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
