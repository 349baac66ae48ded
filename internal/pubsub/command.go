// A command that a node has to write, or has written and that is not answered yet.

package pubsub

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/keys"
)

const (
	// batch is the largest number of channels that one command names.
	batch = 100
	// window is the largest number of unanswered commands of a node. Two keep the connection
	// busy, and channels that come up meanwhile gather into the next command.
	window = 2
)

type verb int

const (
	ping verb = iota
	subscribe
	unsubscribe
)

// command is guarded by Service.mu, except for the fields that are set before it is sent.
type command struct {
	verb  verb
	names []string // as written

	sentAt   time.Time
	channels []*channel // for subscribe: the channels not yet confirmed
	leaving  []string   // for unsubscribe: the names not yet confirmed
}

// backlog holds what a node has still to write, by slot: a command never names two slots. In
// classic mode every channel counts as of slot 0.
type backlog struct {
	sharded bool
	leave   map[int][]string
	join    map[int][]*channel
	solo    []*channel // each in a command of its own
}

func newBacklog(sharded bool) backlog {
	return backlog{sharded: sharded, leave: make(map[int][]string), join: make(map[int][]*channel)}
}

func (b *backlog) slot(name string) int {
	if !b.sharded {
		return 0
	}
	return keys.Slot(name)
}

func (b *backlog) addJoin(ch *channel) {
	if ch.alone {
		b.solo = append(b.solo, ch)
		return
	}
	slot := b.slot(ch.name)
	b.join[slot] = append(b.join[slot], ch)
}

func (b *backlog) addLeave(name string) {
	slot := b.slot(name)
	b.leave[slot] = append(b.leave[slot], name)
}

// take returns the next command for n, or nil. All channels to be left come first: a channel
// may be left and then joined again for a later listener.
func (b *backlog) take(n *node) *command {
	if names := takeBatch(b.leave); len(names) > 0 {
		return &command{verb: unsubscribe, names: names, leaving: slices.Clone(names)}
	}
	for {
		channels := takeBatch(b.join)
		if len(channels) == 0 && len(b.solo) > 0 {
			channels, b.solo = b.solo[:1:1], b.solo[1:]
		}
		if len(channels) == 0 {
			return nil
		}
		cmd := &command{verb: subscribe}
		for _, ch := range channels {
			// The channel may have gone since, or have been queued elsewhere.
			if ch.stage == queued && ch.node == n {
				ch.stage = asked
				cmd.channels = append(cmd.channels, ch)
				cmd.names = append(cmd.names, ch.name)
			}
		}
		if len(cmd.channels) > 0 {
			return cmd
		}
	}
}

// takeBatch takes up to batch elements of one slot.
func takeBatch[T any](slots map[int][]T) []T {
	for slot, all := range slots {
		if len(all) <= batch {
			delete(slots, slot)
			return all
		}
		slots[slot] = all[batch:]
		return all[:batch:batch]
	}
	return nil
}
