// News for holders: a message on a channel makes the Client look at once whether it still has what it holds.

package engine

import (
	"context"
	"time"
)

// watchPause is the least time between two looks, so that messages that others send, be they forged, do not
// keep Redis busy.
const watchPause = 100 * time.Millisecond

// Watch calls look at each message on the channel, and each time the channel is confirmed, since messages before
// that are lost; and once in every, unless that is 0. It does so on a goroutine of its own, until ctx ends. Close
// waits for it.
func (e *Engine) Watch(ctx context.Context, channel string, every time.Duration, look func()) {
	e.Background(func() {
		sub := e.subs.Subscribe(channel)
		defer sub.Close()
		var due <-chan time.Time
		if every > 0 {
			ticker := time.NewTicker(every)
			defer ticker.Stop()
			due = ticker.C
		}
		for {
			select {
			case <-sub.C():
			case <-due:
			case <-ctx.Done():
				return
			}
			look()
			if Sleep(ctx, watchPause) != nil {
				return
			}
		}
	})
}
