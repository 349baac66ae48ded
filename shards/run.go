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

// Run makes this process a member until ctx ends. For each shard that the member has, Run calls work on
// a separate goroutine, with a context. That context ends in these cases:
//
//   - Another member is to have the shard. The cause of the context then matches ErrResigned. The other
//     member begins its work only after this work has returned. If this work goes on for a whole lease
//     after its context has ended, Run logs this. The works on the member's other shards go on.
//   - The member's lease is lost. The cause then matches ErrLost. The lease is lost if Redis was out of
//     reach for the length of a lease, if Redis has refused the member's requests for the length of a
//     lease plus 3 s, or if Redis has lost its data. The contexts of all works of the member end before
//     other members can have its shards. When these works have returned, Run goes on as a new member.
//   - ctx ends. When all works have returned, Run gives the shards up, and returns an error that matches
//     ctx's error.
//   - Close or Shutdown of the Client begins. The cause then matches ErrClosed. When all works have
//     returned, Run returns an error that matches ErrClosed.
//
// If a work returns before its context ends, Run logs the error of the work, if there is one. Run then
// pauses for a second, and calls the work again. If the work returns again and again, the pauses become
// longer, up to 30 s. After a work that lasted a minute, the pause is a second again. If a work panics,
// the process ends, and other members take the member's shards when the member's lease is over.
//
// Errors of Redis do not end Run. If trying again does not help, because the error matches ErrDenied or
// ErrWrongType or because other members have another size, Run logs the error. It then pauses for a
// second and tries again. The pauses become longer, up to 5 s. If an argument of the Shards is wrong, or
// if another Run of this Shards goes on, Run returns at once an error that matches ErrBadArgument.
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
