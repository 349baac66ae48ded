// How a Client finds out whether the channels of a cluster belong to slots.

package route

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/fault"
	"github.com/holdfast-go/holdfast/internal/errs"
)

const (
	unprobed int32 = iota
	classicPubSub
	shardedPubSub
)

func (c *cluster) Sharded(ctx context.Context) (bool, error) {
	if c.pubsub.Load() == unprobed {
		if err := c.load(ctx); err != nil { // the load of the table starts the probe
			return false, err
		}
		select {
		case <-c.answered:
		case <-ctx.Done():
			return false, fmt.Errorf("%w (no master of the cluster has answered)", fault.Unavailable(fault.Over(ctx)))
		case <-c.interrupted:
			return false, fault.Unsent{Err: errs.Closed}
		}
	}
	return c.pubsub.Load() == shardedPubSub, nil
}

// probe finds out whether the servers have sharded channels. A server without them decides for all
// at once, for example while servers are upgraded one by one. A server with them decides after the
// others have had a moment to answer; only a moment, since one of them may be frozen.
func (c *cluster) probe() {
	for {
		var allowed, denied atomic.Bool
		_ = c.leaving(func() error {
			return c.client.ForEachMaster(context.Background(), func(ctx context.Context, master *redis.Client) error {
				c.heardOf(master.PubSubShardNumSub(ctx).Err(), &allowed, &denied)
				return nil
			})
		})
		switch {
		case allowed.Load():
			c.learn(shardedPubSub)
		case denied.Load():
			c.learn(classicPubSub) // if that is wrong, only wake-ups of others are lost
		}
		select {
		case <-c.answered:
			return
		case <-c.interrupted:
			return
		case <-time.After(probeEvery):
		}
	}
}

// heardOf takes in what a master has answered to a question about sharded channels.
func (c *cluster) heardOf(err error, allowed, denied *atomic.Bool) {
	switch {
	case err == nil:
		allowed.Store(true)
		time.AfterFunc(othersTime, func() { c.learn(shardedPubSub) })
	case fault.LacksCommand(err):
		c.learn(classicPubSub)
	case fault.HasCode(err, "NOPERM "):
		denied.Store(true)
	}
}

func (c *cluster) Probed() bool { return c.pubsub.Load() != unprobed }

// probeEvery is how long probe pauses before it asks again.
const probeEvery = 150 * time.Millisecond

// othersTime is how long the other masters have to answer once one has sharded channels.
const othersTime = 100 * time.Millisecond

// learn records the answer. Only the first answer counts.
func (c *cluster) learn(answer int32) {
	if c.pubsub.CompareAndSwap(unprobed, answer) {
		close(c.answered)
	}
}
