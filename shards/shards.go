// Package shards divides work among processes: a fixed number of shards, each of which one member has at a time.
//
// Programs make a Shards with Client.Shards:
//
//	orders := client.Shards("orders", 64, shards.Value(addr))
//	err := orders.Run(ctx, func(ctx context.Context, s *shards.Shard) error {
//		return consume(ctx, s.Number(), s.Token()) // until ctx ends
//	})
//
// # How it works
//
// A member is a hold, kept, renewed and lost as all holds are. Its shards have no lease of their own: it has those
// that the table in Redis says it has, for as long as it is alive. So one renewal keeps all of them, and when the
// lease is over, all of them are free in the same instant.
//
// Nobody is in charge. A script, balance.lua, works out the share of the member that asks. A member with too many gives
// some up, the newest first; one with too few takes what is free, up to its share. A member asks when a message says
// that something has changed, when the lease of another ends, and every 1.25 s. It gives a shard up in a later request,
// when the work on it has returned.
//
//	run.go      Run: members, one after the other
//	member.go   one membership: its wait, its requests, what follows from their answers
//	work.go     the work on one shard
//	query.go    who has a shard; watch.go: all of them, at each change
//
// docs/shards.md says what is promised, and what it costs.
package shards

import (
	"hash/fnv"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// Shards is a fixed number of shards under one name: the numbers from 0 to size-1. The values whose Run is under
// way, in all processes together, are its members. They share the shards evenly, to within one shard, or as their
// weights say.
//
// Any number of goroutines may use one value. Two values are two members, if both run.
type Shards struct {
	engine *engine.Engine
	name   string
	at     keys.Shared
	size   int
	config config
	err    error // why it cannot be used

	running atomic.Bool
}

// New returns the shards of that name, which are at key in Redis. It does no I/O. If something is wrong with
// the arguments, each call returns the error. defaults are those of the Client.
func New(e *engine.Engine, name, key string, size int, defaults hold.Settings, options []Option) *Shards {
	s := &Shards{engine: e, name: name, size: size, config: newConfig(defaults, options)}
	if s.err = e.Broken(); s.err == nil {
		s.err = s.config.check(size)
	}
	if s.err == nil {
		s.at, s.err = e.Keys.ForShards(key)
	}
	return s
}

// Name returns the name that the shards were made with.
func (s *Shards) Name() string { return engine.Made(s).name }

// Size returns how many shards there are.
func (s *Shards) Size() int { return engine.Made(s).size }

// Identity returns the name by which others see this member.
func (s *Shards) Identity() string { return engine.Made(s).config.identity }

// Of returns the shard of a key: FNV-1a(key) mod size, with the 64-bit FNV-1a of the key's bytes, in every
// process alike. It does no I/O. It returns -1 if every call on the Shards fails with ErrBadArgument.
func (s *Shards) Of(key string) int {
	if s.usable() != nil {
		return -1
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // it never fails
	return int(h.Sum64() % uint64(s.size))
}

// usable returns nil, or why s cannot be used.
func (s *Shards) usable() error {
	s = engine.Made(s)
	return engine.Usable(s.engine, s.err)
}

func (s *Shards) fail(op string, err error) error { return errs.Call(op, kind, s.Name(), err) }
