// The work on one shard, which begins again when it has returned.

package shards

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Shard is one shard that a member has. Shards.Run gives the Shard to the work, with a context that ends
// before another member can have the shard. A test may call a work with a nil Shard or the zero Shard,
// whose methods return 0.
type Shard struct {
	held
	member *member
	ctx    context.Context
	end    context.CancelCauseFunc

	// What follows is guarded by member.mu.
	since  time.Time // when the context was seen to have ended; zero: it was not
	over   bool      // the work has returned, and does not begin again
	logged bool      // the log has said that it does not return
}

// Number returns the number of the shard, from 0 to size-1.
func (s *Shard) Number() int { return engine.Made(s).number }

// Token returns the fencing token of the shard. The token is greater than the tokens of all members that
// had the shard before. If the work shows this token with each write, the resource can refuse the writes
// of former members.
func (s *Shard) Token() int64 { return engine.Made(s).token }

// run runs the work until the context of the shard has ended.
func (s *Shard) run() {
	for failures := 0; s.ctx.Err() == nil && s.member.lease.Err() == nil; {
		began := time.Now()
		err := s.member.work(s.ctx, s)
		if s.ctx.Err() != nil {
			break
		}
		if time.Since(began) > lasted {
			failures = 0
		}
		failures++
		if err != nil {
			s.member.warn("holdfast: the work on a shard failed, and begins again", "shard", s.number, "error", errs.Plain(err))
		}
		_ = engine.Sleep(s.ctx, pause(failures, seldom))
	}
}
