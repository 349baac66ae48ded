// A channel is what the service knows of one Redis channel: who listens, and
// how far its subscription has come.

package pubsub

import (
	"container/heap"
	"time"
)

// stage is the state of a channel; the package comment tells of each.
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
	seats []*seat // who listens
	stage stage
	node  *node // set when queued, asked or live

	idleSince time.Time // when the last seat was given up
	retryAt   time.Time // when unplaced: not to be routed before
	liveSince time.Time // when live
	failures  int       // in a row
	lost      bool      // has been live, and is not live again yet
	alone     bool      // refused in company for want of rights: asked for by itself
	denied    bool      // refused when alone, and logged

	// An idle channel has an alarm not later than the end of its linger, an
	// unplaced one not later than retryAt. It may ring for nothing.
	ringAt time.Time
	alarm  int // index in Service.alarms, or -1
}

// channel returns the entry for name, made and due for routing if there is none.
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

// deliver signals what a message has said, unless it is for others.
func (ch *channel) deliver(payload string) {
	if payload == ForOthers {
		return
	}
	for _, at := range ch.seats {
		at.sub.last = payload
	}
	ch.signal()
}

// arm has the router look at ch at the given time, or earlier.
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

// alarms is a heap of channels, the first to ring on top.
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
