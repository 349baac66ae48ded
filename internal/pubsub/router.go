// The router is the goroutine that finds a home for each channel, again after each failure, and
// ends the lingers.

package pubsub

import (
	"container/heap"
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/internal/keys"
)

// quietPeriod is how long a kind of trouble is logged at debug level after it was logged as a
// warning.
const quietPeriod = 10 * time.Second

func (s *Service) route() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, stale := s.due(time.Now())
		for home := range stale {
			s.src.Moved(home)
		}
		if len(due) > 0 {
			s.findHomes(due)
		}
		s.setTimer(timer)
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// due ends the lingers that are over. It returns the channels that must now be routed, and the
// homes that have failed since the last call of due.
func (s *Service) due(now time.Time) (route []*channel, stale map[string]struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.alarms) > 0 && !s.alarms[0].ringAt.After(now) {
		ch := heap.Pop(&s.alarms).(*channel)
		if ch.idle() {
			end := ch.idleSince.Add(s.cfg.Linger)
			if !now.Before(end) {
				s.forget(ch)
				continue
			}
			s.arm(ch, end)
		}
		if ch.stage == unplaced {
			if now.Before(ch.retryAt) {
				s.arm(ch, ch.retryAt)
				continue
			}
			ch.stage = routing
			route = append(route, ch)
		}
	}
	if len(s.stale) > 0 {
		stale, s.stale = s.stale, make(map[string]struct{})
	}
	return route, stale
}

func (s *Service) setTimer(timer *time.Timer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.alarms) == 0 {
		timer.Stop()
		return
	}
	timer.Reset(time.Until(s.alarms[0].ringAt))
}

// findHomes places each of the channels, or sets the time to try it again. If one channel uses
// up the time of all, the source was not asked about the channels behind it, and they are due
// at once. The slow one backs off, so it cannot hold them up for ever.
func (s *Service) findHomes(channels []*channel) {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.ConnectTimeout)
	defer cancel()

	sharded, err := s.src.Sharded(ctx)
	if err != nil {
		s.unroutable(channels, err)
		return
	}
	for i, ch := range channels {
		home, err := s.src.Home(ctx, ch.name)
		if err == nil {
			s.place(ch, home, sharded)
			continue
		}
		s.unroutable(channels[i:i+1], err)
		if ctx.Err() != nil {
			s.postpone(channels[i+1:])
			return
		}
	}
}

// place puts ch on the node for home, and starts that node if there is none.
func (s *Service) place(ch *channel, home string, sharded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	n := s.nodes[home]
	if n == nil {
		n = newNode(s, home, sharded)
		s.nodes[home] = n
		s.running.Go(n.run)
	}
	n.enqueue(ch)
}

func (s *Service) postpone(channels []*channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, ch := range channels {
		ch.stage = unplaced
		s.arm(ch, now)
	}
}

func (s *Service) unroutable(channels []*channel, err error) {
	s.mu.Lock()
	now := time.Now()
	s.retry(channels, now)
	level := s.trouble.level(now)
	s.mu.Unlock()

	if s.ctx.Err() == nil {
		s.cfg.Logger.Log(s.ctx, level, "pubsub: no server found for a subscription",
			"channel", keys.Told(channels[0].name), "channels", len(channels), "error", err)
	}
}

// retry takes the channels off their nodes and sets the time at which each is routed again. It
// forgets a channel without listeners. Channels that fail together are retried together, so
// that they fill one command again.
func (s *Service) retry(channels []*channel, now time.Time) {
	jitter := 1 - rand.Float64()/2
	for _, ch := range channels {
		if ch.idle() {
			s.forget(ch)
			continue
		}
		if ch.stage == live {
			ch.lost = true
			// Only a channel that has stayed live for a while starts afresh: a server that
			// confirms and then hangs up must not be hammered.
			if now.Sub(ch.liveSince) >= s.cfg.MaxBackoff {
				ch.failures = 0
			}
		}
		delay := s.cfg.MaxBackoff
		if shift := ch.failures; shift < 16 {
			delay = min(delay, s.cfg.MinBackoff<<shift)
		}
		ch.failures++
		s.unplace(ch, now.Add(time.Duration(jitter*float64(delay))))
	}
}

// unplace takes ch off its node, to be routed again at the given time.
func (s *Service) unplace(ch *channel, at time.Time) {
	if ch.node != nil {
		ch.node.release(ch)
	}
	ch.stage = unplaced
	ch.retryAt = at
	s.arm(ch, at)
}

// forget ends ch, which has no listeners.
func (s *Service) forget(ch *channel) {
	delete(s.channels, ch.name)
	if n := ch.node; n != nil {
		if ch.stage == asked || ch.stage == live {
			n.unsubscribe(ch)
		}
		n.release(ch)
	}
	ch.stage = gone
	if ch.alarm >= 0 {
		heap.Remove(&s.alarms, ch.alarm)
	}
}

// throttle lets one warning through per quietPeriod.
type throttle struct {
	until time.Time
}

// level returns the level at which to log now: a warning the first time, then debug for
// quietPeriod.
func (t *throttle) level(now time.Time) slog.Level {
	if now.Before(t.until) {
		return slog.LevelDebug
	}
	t.until = now.Add(quietPeriod)
	return slog.LevelWarn
}
