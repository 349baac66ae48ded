// Messages: what the library publishes about a name wakes an Observer of that name.

package observe

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/keys"
)

// messages returns a channel that holds a signal after each message about the name, and a function that ends
// the subscription. For a pattern, and in a cluster, there are no signals.
func (o *Observer) messages() (wake <-chan struct{}, stop func()) {
	name, single := Single(o.options.Pattern)
	if _, sharded := o.rdb.(*redis.ClusterClient); !single || sharded {
		return nil, func() {}
	}
	channels := channelsOf(name)
	if len(channels) == 0 {
		return nil, func() {}
	}
	sub := o.rdb.PSubscribe(context.Background(), channels...)
	signals, done := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(done)
		for range sub.Channel() { // closed by Close
			select {
			case signals <- struct{}{}:
			default:
			}
		}
	}()
	return signals, func() {
		_ = sub.Close()
		<-done
	}
}

// literal returns the pattern that matches one channel.
func literal(channel string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(channel)
}

// channelsOf returns the patterns of the channels on which something is said about a name, whatever its kind.
func channelsOf(name string) (patterns []string) {
	at, err := keys.ForLeader(name)
	if err != nil {
		return nil // it can be no name of Holdfast's
	}
	patterns = []string{literal(at.Channel), literal(at.Changes), literal(at.Grant) + ":*"}
	if at, err := keys.ForRW(name); err == nil {
		patterns = append(patterns, literal(at.Channel))
	}
	if at, err := keys.ForSemaphore(name); err == nil {
		patterns = append(patterns, literal(at.Channel))
	}
	if at, err := keys.ForLatch(name); err == nil {
		patterns = append(patterns, literal(at.Channel))
	}
	if at, err := keys.ForBarrier(name); err == nil {
		patterns = append(patterns, literal(at.Channel))
	}
	record := keys.OnceRecordAt(name)
	return append(patterns, literal(strings.Replace(record, "holdfast_once:", "holdfast_once_channel:", 1)))
}
