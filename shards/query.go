// Who has a shard.

package shards

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Info says which member has a shard, according to Redis. If no member has the shard, all fields except
// Shard are zero.
type Info struct {
	// Shard is the number of the shard.
	Shard int
	// Identity and Value are the texts that the member has set by the options Identity and Value.
	Identity string
	Value    string
	// Token is the member's fencing token for the shard. Token is 0 if no member has the shard.
	Token int64
	// Left is how long the member's lease lasts if the member does not renew it again.
	Left time.Duration
}

// Owned reports whether a member has the shard. If not, the shard is moving between two members, or
// there are no members.
func (i Info) Owned() bool { return i.Token != 0 }

// Owner returns which member has the shard to which key belongs: see Of. If no member has the shard,
// Owned of the returned Info is false. In that case the shard is moving between two members, or there
// are no members. Owner asks the master of Redis once, and waits for the answer as long as ctx allows,
// but at most 3 s. If you route many requests, use Watch instead.
//
// The member may give the shard up directly after the answer. If something must not happen twice, do it
// in the work of the member that has the shard, with the context and the token of that work. If the
// members have another number of shards than this Shards, the error matches ErrBadArgument.
func (s *Shards) Owner(ctx context.Context, key string) (Info, error) {
	const op = "query"
	if err := s.usable(); err != nil {
		return Info{}, s.fail(op, err)
	}
	ctx, cancel := engine.Bounded(ctx)
	defer cancel()
	info := Info{Shard: s.Of(key)}
	l, err := s.look(ctx, info.Shard, version{})
	if err != nil {
		return Info{}, s.fail(op, errs.Ended(ctx, err))
	}
	if len(l.owners) > 0 {
		info = l.owners[0]
	}
	return info, nil
}

// look asks who has a shard, or all of them if that is -1, unless all is as known.
func (s *Shards) look(ctx context.Context, shard int, known version) (look, error) {
	call := &conn.Call{
		Script: lookScript,
		Keys:   []string{s.at.Members, s.at.Table},
		Args:   []any{shard, known.rev, known.members},
	}
	if err := s.engine.Conn.Run(ctx, call); err != nil {
		return look{}, s.engine.Foreign(ctx, engine.SortedSet, s.at.Members, err)
	}
	l := lookIn(call)
	if l.size != 0 && l.size != int64(s.size) && l.members > 0 {
		return look{}, fmt.Errorf("%d shards, but its members say that there are %d: %w", s.size, l.size, errs.BadArgument)
	}
	return l, nil
}
