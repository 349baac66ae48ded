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

// Info says who has a shard, according to Redis. If no member has the shard, only the field Shard is
// set.
type Info struct {
	Shard int
	// Identity and Value are as the options of the member that has the shard set them.
	Identity string
	Value    string
	// Token is the member's fencing token for the shard. It is 0 if no member has the shard.
	Token int64
	// Left is how long the member's lease lasts if it is not renewed again.
	Left time.Duration
}

// Owned reports whether a member has the shard.
func (i Info) Owned() bool { return i.Token != 0 }

// Owner returns which member has the shard of a key: see Of. Info.Owned is false if no member has the shard: it is
// moving between two members, or there are no members. Owner asks Redis's master once, and waits for the answer as long
// as ctx allows, at most 3 s. To route many requests, use Watch instead.
//
// The member may give the shard up in the next instant. If something must not happen twice, do it in the member's work,
// with the work's context and token. If the members use another number of shards than this Shards, the error matches
// ErrBadArgument.
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
