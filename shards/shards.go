// Package shards divides work among processes. There is a fixed number of shards. Each process that does
// work is a member, and each shard belongs to at most one member at a time.
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
// Each member has one lease, and its shards have no leases of their own. A table in Redis says which
// shards each member has. A member has its shards as long as its lease lasts. So one renewal keeps all
// shards of a member, and when the member's lease is over, all its shards are free at the same instant.
//
// There is no leader. When a member asks Redis, the script balance.lua computes how many shards this
// member should have. If the member has too many shards, it gives up those that it got last. If the
// member has too few, it takes free shards. A member asks when a message says that something has
// changed, when the lease of another member ends, and every 1.25 s. To give a shard up, a member first
// ends the work on the shard. When the work has returned, the member sends another request, and the
// shard is free.
//
//	run.go      Run, which makes one membership after another
//	member.go   one membership: how it waits, what it asks, and what it does with the answers
//	work.go     the work on one shard
//	query.go    Owner, which says who has one shard
//	watch.go    Watch, which says who has each shard, after each change
//
// docs/shards.md says what package shards promises, and what it costs.
package shards

import (
	"hash/fnv"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// Shards is a fixed number of shards under one name, with the numbers from 0 to size-1. A Shards is a
// member while its Run goes on. In all processes together, the members of one name share the shards in
// proportion to their weights, to within one shard. If nobody gives the option Weight, the members share
// evenly.
//
// Any number of goroutines may use one Shards. If one process has two Shards of a name and both run,
// they are two members.
type Shards struct {
	engine *engine.Engine
	name   string
	at     keys.Shared
	size   int
	config config
	err    error // why it cannot be used

	running atomic.Bool
}

// New returns the Shards of that name. Programs call Client.Shards, which calls New. key is the name as
// it is stored in Redis. defaults are the lease options of the Client. New does no I/O. If an argument
// is wrong, each call on the returned Shards returns the error.
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

// Name returns the name that the program gave to Client.Shards.
func (s *Shards) Name() string { return engine.Made(s).name }

// Size returns how many shards there are under the name.
func (s *Shards) Size() int { return engine.Made(s).size }

// Identity returns the name of this member, which other processes get from Owner and Watch: see the
// option Identity.
func (s *Shards) Identity() string { return engine.Made(s).config.identity }

// Of returns the number of the shard to which key belongs: the 64-bit FNV-1a hash of the key's bytes,
// modulo the size. The number is the same in every process. Of does no I/O. If the Shards was made with
// wrong arguments, Of returns -1.
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
