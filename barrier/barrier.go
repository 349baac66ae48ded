// Package barrier is the cyclic barrier: a number of parties, in all processes together, wait for each
// other, and then all go on. Then it is ready for the next time.
//
// Programs make a Barrier with Client.Barrier, and call Await:
//
//	phase := client.Barrier("reindex", 8)
//	for _, shard := range shards {
//		work(shard)
//		if _, err := phase.Await(ctx); err != nil {
//			return err
//		}
//	}
//
// # What a generation goes through
//
//	open     the first party has come, and the parties that come wait
//	tripped  the last party has come. All go on
//	broken   a party's wait has ended before that, or its process has died. The others get ErrBroken
//
// The first party to come after a trip or a break begins a new generation.
//
// Redis decides whether a generation trips or breaks, in one script. So as long as Redis keeps its
// data the parties of a generation agree: it has tripped for all of them, or for none. A party that
// cannot learn which it was gets ErrUnknown. docs/barrier.md has each case.
package barrier

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// Barrier lets a number of parties wait for each other. All callers that use its name share it.
//
// A Barrier holds no state: any number of goroutines may use one value. Each call of Await is one
// party.
type Barrier struct {
	engine   *engine.Engine
	name     string
	at       keys.Barrier
	parties  int
	settings hold.Settings
	err      error // why it cannot be used
}

// New returns the barrier of that name for that many parties. mapped is the name in Redis. defaults are the settings of the Client. New does no I/O. If an argument is wrong, every call
// on the barrier returns that error.
func New(e *engine.Engine, name, mapped string, parties int, defaults hold.Settings, options []Option) *Barrier {
	b := &Barrier{engine: e, name: name, parties: parties, settings: newSettings(defaults, options)}
	if b.err = e.Broken(); b.err == nil {
		b.at, b.err = e.Keys.ForBarrier(mapped)
	}
	if b.err == nil {
		b.err = check(parties, b.settings)
	}
	return b
}

// Name returns the name that the barrier was made with.
func (b *Barrier) Name() string { return engine.Made(b).name }

// Parties returns the number of parties that the barrier was made with.
func (b *Barrier) Parties() int { return engine.Made(b).parties }

// State is the state of a barrier.
type State struct {
	// Generation is the number of the generation under way, or of the last one if none is; 0 if
	// there was none within a day.
	Generation int64
	// Parties is how many parties the generation under way needs; 0 if none is.
	Parties int
	// Arrived is how many of them have come; 0 if no generation is under way. A party that has died
	// counts until its place is over.
	Arrived int
}

// State asks the master for the state of the barrier. Transient errors of Redis are retried until ctx
// ends.
func (b *Barrier) State(ctx context.Context) (State, error) {
	s, err := b.state(ctx)
	if err != nil {
		return State{}, b.fail("query", errs.Ended(ctx, err))
	}
	return s, nil
}

func (b *Barrier) state(ctx context.Context) (State, error) {
	if err := b.usable(); err != nil {
		return State{}, err
	}
	call := &conn.Call{Script: stateScript, Keys: []string{b.at.Record}}
	if err := b.engine.Conn.Run(ctx, call); err != nil {
		return State{}, err
	}
	return stateIn(call), nil
}

// Reset breaks the generation under way, and reports whether it is broken: false if none was under way, or if it
// tripped first; true even if another call has just broken it. Those that wait in it get ErrBroken. A broken barrier
// needs no Reset: the next party begins a new generation.
//
// If Redis does not answer within 3 s, or before ctx's deadline, the error matches ErrUnavailable, or
// ctx's error. It also matches ErrUnknown if the request was sent: it may have broken the generation,
// or may do so later.
func (b *Barrier) Reset(ctx context.Context) (bool, error) {
	bounded, cancel := engine.Bounded(ctx)
	defer cancel()
	s, err := b.state(bounded)
	if err != nil {
		return false, b.fail("reset", errs.Ended(ctx, err))
	}
	if s.Parties == 0 {
		return false, nil
	}
	how, err := b.breaks(bounded, s.Generation, "")
	if err != nil {
		return false, b.fail("reset", errs.Ended(ctx, err))
	}
	return how == broken, nil
}

func (b *Barrier) fail(op string, err error) error {
	return errs.Call(op, kind, b.Name(), errs.Bare(err))
}

func (b *Barrier) usable() error {
	b = engine.Made(b)
	return engine.Usable(b.engine, b.err)
}
