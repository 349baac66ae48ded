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

// Info is who has a shard, as Redis knows it. If nobody has it, only Shard is set.
type Info struct {
	Shard int
	// Identity and Value are as the options of the member that has the shard set them.
	Identity string
	Value    string
	// Token is the member's fencing token for the shard; 0 if nobody has it.
	Token int64
	// Left is how long the member's lease lasts if it is not renewed any more.
	Left time.Duration
}

// Owned reports whether somebody has the shard.
func (i Info) Owned() bool { return i.Token != 0 }

// Owner returns who has the shard of a key: see Of. If nobody has it, because it is between two members, or there is
// no member, Owned is false. Owner asks the master, once, and waits for its answer as long as ctx allows, at most 3
// s. To route many requests, follow Watch instead.
//
// The member may give the shard up in the next instant. Do what must not happen twice in its work, with its
// context and its token. If the members have another number of shards, the error matches ErrBadArgument.
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
