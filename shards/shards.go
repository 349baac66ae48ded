// Package shards divides work among processes. There is a fixed number of shards, and each shard belongs to one member,
// that is, to one process, at a time.
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
// Each member has one lease. Its shards have no leases of their own: a table in Redis says which shards a member has,
// and it has them as long as its lease lasts. So one renewal keeps all of the member's shards, and when its lease is
// over, all of them are free at the same instant.
//
// There is no leader. A script, balance.lua, computes how many shards the member that asks should have. If the member
// has too many, it gives some up, those first that it got last. If it has too few, it takes free shards. A member asks
// when a message says that something has changed, when the lease of another member ends, and every 1.25 s. To give a
// shard up, a member first ends the work on it, and sends another request when the work has returned.
//
//	run.go      Run: members, one after the other
//	member.go   one membership: its wait, its requests, what follows from their answers
//	work.go     the work on one shard
//	query.go    who has a shard; watch.go: all of them, at each change
//
// docs/shards.md says what shards promise, and what they cost.
package shards

import (
	"hash/fnv"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// Shards is a fixed number of shards under one name, with the numbers from 0 to size-1. In all processes together, each
// Shards of that name whose Run goes on is a member. The members share the shards in proportion to their weights, to
// within one shard. Without weights, they share evenly.
//
// Any number of goroutines may use one Shards. If two Shards of one process both run, they are two
// members.
type Shards struct {
	engine *engine.Engine
	name   string
	at     keys.Shared
	size   int
	config config
	err    error // why it cannot be used

	running atomic.Bool
}

// New returns the Shards of that name, which is stored at key in Redis. It does no I/O. If an argument is wrong, each
// call on the Shards returns the error. defaults are the lease options of the Client.
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

// Name returns the name that the Shards was made with.
func (s *Shards) Name() string { return engine.Made(s).name }

// Size returns how many shards there are.
func (s *Shards) Size() int { return engine.Made(s).size }

// Identity returns the name that other processes see for this member.
func (s *Shards) Identity() string { return engine.Made(s).config.identity }

// Of returns the shard of a key, the same in every process: the 64-bit FNV-1a of the key's bytes, mod size. It does no
// I/O. If the Shards was made with wrong arguments, Of returns -1.
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
