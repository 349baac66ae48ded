// Package barrier has the cyclic barrier. A number of parties, in all processes together, wait for each
// other. When the last party has come, all parties go on. After that, programs can use the same barrier
// again.
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
//	open     the first party has come. Each party that comes waits
//	tripped  the last party has come. All parties go on
//	broken   before the last party came, the wait of a party ended or the process of a party died. The
//	         other parties get ErrBroken
//
// After a generation has tripped or broken, the next party that comes begins a new generation.
//
// A script in Redis decides whether a generation trips or breaks. So as long as Redis keeps its data, all
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

// Barrier makes a number of parties wait for each other. All callers that use the same name share the
// barrier. Each call of Await is one party.
//
// A Barrier holds no state, so any number of goroutines may use one Barrier.
type Barrier struct {
	engine   *engine.Engine
	name     string
	at       keys.Barrier
	parties  int
	settings hold.Settings
	err      error // why it cannot be used
}

// New returns the barrier of the given name. parties is the number of its parties. mapped is the name as
// Redis stores it. defaults are the settings of the Client. New does no I/O. If an argument or an option
// is wrong, every call on the barrier returns the error.
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

// Name returns the name of the barrier, as the program gave it to Client.Barrier.
func (b *Barrier) Name() string { return engine.Made(b).name }

// Parties returns the number of parties that the program gave to Client.Barrier.
func (b *Barrier) Parties() int { return engine.Made(b).parties }

// State is the state of a barrier at the moment when Redis was asked.
type State struct {
	// Generation is the number of the open generation. If no generation is open, Generation is the number
	// of the last generation. Generation is 0 if there was no generation within the last day.
	Generation int64
	// Parties is how many parties the open generation needs. Parties is 0 if no generation is open.
	Parties int
	// Arrived is how many parties of the open generation have come. Arrived is 0 if no generation is open.
	// A party whose process has died counts until the lease of its place is over.
	Arrived int
}

// State asks Redis's master for the state of the barrier, and returns it. If Redis returns a transient
// error, State tries again until ctx ends.
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

// Reset breaks the open generation, and reports whether that generation is broken. Reset returns true even
// if another call broke the generation just before. Reset returns false if no generation is open, or if
// the last party came before Reset could break the generation. The parties that wait in the broken
// generation get ErrBroken. After a generation has broken, nobody needs to call Reset, because the next
// party begins a new generation.
//
// If Redis does not answer within 3 s, the error matches ErrUnavailable. If ctx ends before Redis has
// answered, the error matches ctx's error. If the request was sent but not answered, the error also
// matches ErrUnknown: the request may have broken the generation, or may still break it later.
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
