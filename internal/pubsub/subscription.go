// A Subscription is one owner's wake-up on a channel.

package pubsub

import "time"

// Subscription wakes its owner when something may have happened on a channel.
type Subscription struct {
	service *Service
	signal  chan struct{}

	// Guarded by Service.mu.
	channel *channel // nil once closed
	index   int      // in channel.subs
}

// C returns the channel that carries the wake-ups: at most one is pending,
// whatever it stands for. It is never closed.
func (sub *Subscription) C() <-chan struct{} { return sub.signal }

// Close ends the Subscription: it is not signalled any more. The channel stays
// subscribed for the linger when this was its last one. A second Close does
// nothing.
func (sub *Subscription) Close() {
	s := sub.service
	s.mu.Lock()
	defer s.mu.Unlock()

	ch := sub.channel
	if ch == nil {
		return
	}
	ch.remove(sub)
	if ch.idle() && !s.closed {
		ch.idleSince = time.Now()
		s.arm(ch, ch.idleSince.Add(s.cfg.Linger))
	}
}
