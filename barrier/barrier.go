// Package barrier has the cyclic barrier: a number of parties, in all processes together, wait for each
// other, and then all of them go on. After that, the same barrier can be used again.
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
// The first party that comes after a generation has tripped or broken begins a new generation.
//
// One script in Redis decides whether a generation trips or breaks. So as long as Redis keeps its data, all
// parties of a generation agree whether it has tripped or broken. A party that cannot learn how its
// generation ended gets ErrUnknown. docs/barrier.md has each case.
package barrier

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// Barrier lets a number of parties wait for each other. All callers that use its name share it. Each call
// of Await is one party.
//
// A Barrier holds no state: any number of goroutines may use one value.
type Barrier struct {
	engine   *engine.Engine
	name     string
	at       keys.Barrier
	parties  int
	settings hold.Settings
	err      error // why it cannot be used
}

// New returns the barrier of that name for that many parties. mapped is the name in Redis. defaults are the
// settings of the Client. New does no I/O. If an argument is wrong, every call on the barrier returns the
// error.
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
	// Generation is the number of the open generation. If no generation is open, it is the number of the
	// last generation. It is 0 if there was no generation within the last day.
	Generation int64
	// Parties is how many parties the open generation needs. It is 0 if no generation is open.
	Parties int
	// Arrived is how many parties of the open generation have come. It is 0 if no generation is open. A
	// party whose process has died counts until the lease of its place is over.
	Arrived int
}

// State asks the master for the state of the barrier. If Redis returns a transient error, State tries again
// until ctx ends.
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

// Reset breaks the open generation, and reports whether that generation is broken. It returns true even if
// another call has just broken the generation. It returns false if no generation is open, or if the last
// party came first. The parties that wait in the generation get ErrBroken. A broken barrier needs no Reset,
// because the next party begins a new generation.
//
// If Redis does not answer within 3 s, or before ctx's deadline, the error matches ErrUnavailable, or ctx's
// error. If the request was sent, the error also matches ErrUnknown: the request may have broken the
// generation, or may do so later.
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
