// Run: one membership after the other.

package shards

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
)

// Run makes this process a member until ctx ends. For each shard that the member has, Run calls work on a goroutine of
// its own. The work's context ends
//
//   - when another member is to have the shard: the context's cause matches ErrResigned. The other member begins its
//     work only after this work has returned. If this work goes on for a whole lease, Run logs that. The work on other
//     shards goes on.
//   - when the member's lease is lost, with ErrLost: Redis was out of reach for a lease, or has refused the member's
//     requests for a lease and 3 s, or has lost its data. Then the contexts of all works end, before other members can
//     have their shards. When the works have returned, Run goes on as a new member.
//   - when ctx ends. When all works have returned, Run gives the shards up, and returns an error that matches ctx's
//     error.
//   - when Close or Shutdown of the Client begins, with ErrClosed. Run then returns ErrClosed.
//
// If a work returns before its context ends, Run logs its error, if any, and calls the work again after a second, then
// after longer pauses, up to 30 s. After a work that lasted a minute, the pause is a second again. If a work panics,
// the process ends, and other members take its shards when its lease is over.
//
// Errors of Redis do not end Run. If a retry alone does not mend the error (ErrDenied, ErrWrongType, members with
// another size), Run logs it, and tries again after a second, then after longer pauses, up to 5 s. If an argument is
// wrong, or if another Run of this Shards goes on, Run returns an error that matches ErrBadArgument at once.
func (s *Shards) Run(ctx context.Context, work func(ctx context.Context, s *Shard) error) error {
	const op = "run"
	if err := s.usable(); err != nil {
		return s.fail(op, err)
	}
	if work == nil {
		return s.fail(op, fmt.Errorf("no work: %w", errs.BadArgument))
	}
	if !s.running.CompareAndSwap(false, true) {
		return s.fail(op, fmt.Errorf("another Run of it goes on: %w", errs.BadArgument))
	}
	defer s.running.Store(false)
	for failures := 0; ; {
		began := time.Now()
		err := s.belong(ctx, work)
		switch {
		case ctx.Err() != nil:
			return s.fail(op, errs.Ended(ctx, ctx.Err()))
		case errors.Is(err, errs.Closed):
			return s.fail(op, errs.Closed)
		case time.Since(began) > lasted:
			failures = 0
		}
		failures++
		s.warn("holdfast: this process is no member of its shards, and becomes one again", "error", errs.Plain(err))
		_ = engine.Sleep(ctx, pause(failures, rarely))
	}
}

const (
	// soon is the pause after a failure. It doubles with each failure in a row; each is less by up to a tenth.
	soon = time.Second
	// rarely is the longest pause before this process tries to be a member again, seldom before a work begins again.
	rarely = 5 * time.Second
	seldom = 30 * time.Second
	// lasted is how long something must have gone on so that what comes next is the first failure in a row.
	lasted = time.Minute
)

// pause returns the pause after so many failures in a row.
func pause(failures int, most time.Duration) time.Duration {
	d := min(soon<<min(failures-1, 5), most)
	return d - rand.N(d/10)
}

func (s *Shards) warn(what string, args ...any) {
	s.engine.Log.Warn(what, append([]any{"kind", kind, "name", engine.LogName(s.name), "identity", s.config.identity}, args...)...)
}

// belong is one membership. It returns when all works have returned, and the shards are given up.
func (s *Shards) belong(ctx context.Context, work func(context.Context, *Shard) error) error {
	publish, err := s.engine.Conn.PublishCommand(ctx)
	if err != nil {
		return err
	}
	r := &resource{Shards: s, publish: publish}
	l, err := hold.Request{Engine: s.engine, Resource: r, Settings: s.config.hold, Op: "join", Afresh: true, AtOnce: true}.Acquire(ctx)
	if err != nil {
		return errs.Bare(err)
	}
	m := newMember(ctx, r, l, work)
	err = m.serve()
	m.end(err)
	m.returned()
	_ = l.Release(ctx) // or its lease runs out
	return err
}
