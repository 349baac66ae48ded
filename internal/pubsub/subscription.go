// A Subscription is the wake-up of one owner.

package pubsub

import "time"

// Subscription wakes its owner when something may have happened on one of its
// channels.
type Subscription struct {
	service *Service
	signal  chan struct{}
	seats   []*seat // guarded by Service.mu; nil once closed
	last    string  // guarded by Service.mu: see Last
}

// seat is a Subscription's place in one channel. It is guarded by Service.mu.
type seat struct {
	sub     *Subscription
	channel *channel
	index   int // in channel.seats
}

// C returns the channel that carries the wake-ups. At most one is pending, however many events
// it stands for. The channel is never closed.
func (sub *Subscription) C() <-chan struct{} { return sub.signal }

// Last returns the payload of the latest message, if it was not read yet; "" otherwise. Earlier
// payloads are lost.
func (sub *Subscription) Last() string {
	sub.service.mu.Lock()
	defer sub.service.mu.Unlock()
	last := sub.last
	sub.last = ""
	return last
}

// Suspect says that the owner has found out without a message what one should have said. Each
// connection that carries one of its channels is then sent a PING at once, so that a dead connection
// is replaced after PongTimeout. Where an answer is due anyway, no PING is sent: that answer shows
// whether the connection lives.
func (sub *Subscription) Suspect() {
	s := sub.service
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, at := range sub.seats {
		if ch := at.channel; ch.stage == live && len(ch.node.sent) == 0 {
			ch.node.suspected = true
			poke(ch.node.wake)
		}
	}
}

// Close ends the Subscription: it is not signalled any more. A channel that has lost its last
// Subscription stays subscribed for the linger. A second Close does nothing.
func (sub *Subscription) Close() {
	s := sub.service
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, at := range sub.seats {
		ch := at.channel
		ch.remove(at)
		if ch.idle() && !s.closed {
			ch.idleSince = time.Now()
			s.arm(ch, ch.idleSince.Add(s.cfg.Linger))
		}
	}
	sub.seats = nil
}
