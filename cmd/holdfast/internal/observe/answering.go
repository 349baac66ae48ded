// Whether Redis still answers: what goes over very many names may take long, and what gets no answer may not.

package observe

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// WhileAnswering returns a context that ends with ctx, or once Redis has not answered for as long as patience:
// then its cause matches ErrUnavailable. It asks with a PING, four times in that while, beginning after the
// first quarter. rdb must heed contexts: ContextTimeoutEnabled. stop ends it, and must be called.
func WhileAnswering(
	ctx context.Context, rdb redis.UniversalClient, patience time.Duration,
) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		turns := time.NewTicker(max(patience/4, time.Millisecond))
		defer turns.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-turns.C:
			}
			if err := answers(ctx, rdb, patience, patience*3/4); err != nil && ctx.Err() == nil {
				cancel(err)
				return
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// answers returns nil as soon as Redis answers, whatever it says, within that time.
func answers(ctx context.Context, rdb redis.UniversalClient, patience, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := rdb.Ping(ctx).Err()
		if err == nil || isReply(err) {
			return nil
		}
		pause := time.NewTimer(min(patience/10, 100*time.Millisecond))
		select {
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("%w: Redis has not answered for %v: %w", holdfast.ErrUnavailable, patience, err)
		case <-pause.C:
		}
	}
}

// isReply reports whether an error is Redis's own answer.
func isReply(err error) bool {
	_, is := err.(redis.Error) //nolint:errorlint // go-redis returns replies as they are
	return is
}
