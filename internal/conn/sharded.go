// How a Client finds out whether the channels of a cluster belong to slots.

package conn

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
)

const (
	unprobed int32 = iota
	classicPubSub
	shardedPubSub
)

func (c *cluster) sharded(ctx context.Context) (bool, error) {
	if c.pubsub.Load() == unprobed {
		if err := c.load(ctx); err != nil { // the load of the table starts the probe
			return false, err
		}
		select {
		case <-c.answered:
		case <-ctx.Done():
			return false, fmt.Errorf("%w (no master of the cluster has answered)", unavailable(over(ctx)))
		case <-c.interrupted:
			return false, unsent{errs.Closed}
		}
	}
	return c.pubsub.Load() == shardedPubSub, nil
}

// probe finds out whether the servers have sharded channels. A server without them decides for
// all at once, as while servers are upgraded one by one. A server with them decides after the
// others have had a moment to answer; only a moment, since one of them may be frozen.
func (c *cluster) probe() {
	for {
		var denied, allowed atomic.Int32
		_ = c.leaving(func() error {
			return c.client.ForEachMaster(context.Background(), func(ctx context.Context, master *redis.Client) error {
				switch err := master.PubSubShardNumSub(ctx).Err(); {
				case err == nil:
					allowed.Add(1)
					time.AfterFunc(othersTime, func() { c.learn(shardedPubSub) })
				case isReply(err) && isUnknownCommand(err):
					c.learn(classicPubSub)
				case hasCode(err, "NOPERM "):
					denied.Add(1)
				}
				return nil
			})
		})
		switch {
		case allowed.Load() > 0:
			c.learn(shardedPubSub)
		case denied.Load() > 0:
			c.learn(classicPubSub) // if that is wrong, only wake-ups of others are lost
		}
		select {
		case <-c.answered:
			return
		case <-c.interrupted:
			return
		case <-time.After(maxBackoff):
		}
	}
}

func (c *cluster) probed() bool { return c.pubsub.Load() != unprobed }

// othersTime is how long the other masters have to answer once one has sharded channels.
const othersTime = 100 * time.Millisecond

// learn records the answer. Only the first answer counts.
func (c *cluster) learn(answer int32) {
	if c.pubsub.CompareAndSwap(unprobed, answer) {
		close(c.answered)
	}
}
