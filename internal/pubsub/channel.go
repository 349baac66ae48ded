// A channel is what the service knows about one Redis channel: its listeners, and the stage of
// its subscription.

package pubsub

import (
	"container/heap"
	"time"
)

// stage is the state of a channel; the package comment explains each.
type stage int

const (
	unplaced stage = iota
	routing
	queued
	asked
	live
	gone
)

// channel is guarded by Service.mu.
type channel struct {
	name  string
	seats []*seat // the listeners
	stage stage
	node  *node // set when queued, asked or live

	idleSince time.Time // when the last listener left
	retryAt   time.Time // if unplaced: it must not be routed before
	liveSince time.Time // if live: since when
	failures  int       // how many in a row
	lost      bool      // it was live, and is not live again yet
	alone     bool      // refused together with others for want of rights: subscribed to in a command of its own
	denied    bool      // refused in a command of its own, and logged

	// An idle channel has an alarm not later than the end of its linger, an unplaced one not
	// later than retryAt. An alarm may ring without need.
	ringAt time.Time
	alarm  int // index in Service.alarms, or -1
}

// channel returns the entry for name. If there is none, it makes one that is due for routing.
func (s *Service) channel(name string) *channel {
	ch := s.channels[name]
	if ch == nil {
		ch = &channel{name: name, alarm: -1}
		s.channels[name] = ch
		s.arm(ch, time.Now())
	}
	return ch
}

func (ch *channel) idle() bool { return len(ch.seats) == 0 }

func (ch *channel) add(sub *Subscription) {
	at := &seat{sub: sub, channel: ch, index: len(ch.seats)}
	ch.seats = append(ch.seats, at)
	sub.seats = append(sub.seats, at)
	if ch.stage == live {
		poke(sub.signal)
	}
}

func (ch *channel) remove(at *seat) {
	last := len(ch.seats) - 1
	ch.seats[at.index] = ch.seats[last]
	ch.seats[at.index].index = at.index
	ch.seats[last] = nil
	ch.seats = ch.seats[:last]
}

func (ch *channel) signal() {
	for _, at := range ch.seats {
		poke(at.sub.signal)
	}
}

// deliver records the payload for each listener and signals it, unless the message is for
// others.
func (ch *channel) deliver(payload string) {
	if payload == ForOthers {
		return
	}
	for _, at := range ch.seats {
		at.sub.last = payload
	}
	ch.signal()
}

// arm makes the router look at ch at the given time, or earlier.
func (s *Service) arm(ch *channel, at time.Time) {
	switch {
	case ch.alarm < 0:
		ch.ringAt = at
		heap.Push(&s.alarms, ch)
	case at.Before(ch.ringAt):
		ch.ringAt = at
		heap.Fix(&s.alarms, ch.alarm)
	default:
		return
	}
	if ch.alarm == 0 {
		poke(s.wake)
	}
}

// alarms is a heap of channels, with the first to ring on top.
type alarms []*channel

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].ringAt.Before(a[j].ringAt) }

func (a alarms) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].alarm, a[j].alarm = i, j
}

func (a *alarms) Push(x any) {
	ch := x.(*channel)
	ch.alarm = len(*a)
	*a = append(*a, ch)
}

func (a *alarms) Pop() any {
	last := len(*a) - 1
	ch := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	ch.alarm = -1
	return ch
}
