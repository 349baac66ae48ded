// The work on one shard, which begins again when it has returned.

package shards

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Shard is one shard, as the member has it. The work gets it together with its context, which ends before another
// member can have the shard. The methods of a nil or zero Shard, which a test may give to a work, return 0.
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

// Number returns the number of the shard: from 0 to Size-1.
func (s *Shard) Number() int { return engine.Made(s).number }

// Token returns the fencing token of the shard: a number greater than those of all its earlier owners. With it
// the resource that the work changes can refuse a member that has been overtaken.
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
