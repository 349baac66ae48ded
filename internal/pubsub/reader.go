// The reader of a node: it takes replies and messages from the connection.

package pubsub

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/keys"
)

// read handles replies and messages from w until w fails, or sends something that makes no
// sense.
func (n *node) read(w *wire) error {
	for {
		frame, err := w.receive()
		now := time.Now()
		switch frame := frame.(type) {
		case *redis.Message:
			n.message(frame, now)
		case *redis.Subscription:
			err = n.subscription(frame, now)
		case *redis.Pong:
			err = n.pong(now)
		case nil:
			var refusal redis.Error
			if errors.As(err, &refusal) {
				err = n.refused(refusal, now)
			}
		}
		if err != nil {
			return err
		}
	}
}

func (n *node) message(frame *redis.Message, now time.Time) {
	s := n.service
	s.mu.Lock()
	defer s.mu.Unlock()
	n.heard = now
	if ch := s.channels[frame.Channel]; ch != nil {
		ch.deliver(frame.Payload)
	}
}

func (n *node) subscription(frame *redis.Subscription, now time.Time) error {
	switch frame.Kind {
	case "subscribe", "ssubscribe":
		return n.joined(frame.Channel, now)
	case "unsubscribe", "sunsubscribe":
		n.left(frame.Channel, now)
		return nil
	}
	return fmt.Errorf("%w: %s of %q", errOutOfStep, frame.Kind, keys.Told(frame.Channel))
}

// joined makes the channel live, and calls Reconnected for the first channel that this
// connection has restored.
func (n *node) joined(name string, now time.Time) error {
	restored, err := n.confirm(name, now)
	if restored && n.service.cfg.Reconnected != nil {
		n.service.cfg.Reconnected()
	}
	return err
}

func (n *node) confirm(name string, now time.Time) (restored bool, err error) {
	n.service.mu.Lock()
	defer n.service.mu.Unlock()
	n.heard = now
	i := -1
	cmd := n.oldest(subscribe)
	if cmd != nil {
		i = slices.IndexFunc(cmd.channels, func(ch *channel) bool { return ch.name == name })
	}
	if i < 0 {
		return false, fmt.Errorf("%w: subscribed to %q", errOutOfStep, keys.Told(name))
	}
	ch := cmd.channels[i]
	cmd.channels = slices.Delete(cmd.channels, i, i+1)
	if len(cmd.channels) == 0 {
		n.answered()
	}
	if !ch.askedAt(n) {
		return false, nil
	}
	restored = ch.lost && !n.restored
	n.restored = n.restored || restored
	ch.stage, ch.liveSince = live, now
	ch.lost, ch.denied, ch.alone = false, false, false
	ch.signal()
	return restored, nil
}

// left records that the server has unsubscribed the channel. The server does so without being
// asked when the channel's slot moves.
func (n *node) left(name string, now time.Time) {
	s := n.service
	s.mu.Lock()
	defer s.mu.Unlock()
	n.heard = now
	if cmd := n.oldest(unsubscribe); cmd != nil {
		if i := slices.Index(cmd.leaving, name); i >= 0 {
			cmd.leaving = slices.Delete(cmd.leaving, i, i+1)
			if len(cmd.leaving) == 0 {
				n.answered()
			}
			return
		}
	}
	if ch := s.channels[name]; ch != nil && ch.node == n && (ch.stage == asked || ch.stage == live) {
		s.stale[n.home] = struct{}{}
		s.retry([]*channel{ch}, now)
	}
}

func (n *node) pong(now time.Time) error {
	n.service.mu.Lock()
	defer n.service.mu.Unlock()
	n.heard = now
	if n.oldest(ping) == nil {
		return fmt.Errorf("%w: PONG", errOutOfStep)
	}
	n.answered()
	return nil
}

// refused handles an error reply, which answers the oldest command. To a PING or an UNSUBSCRIBE
// it is an answer like any other: to a PING it shows that the server is there; to an
// UNSUBSCRIBE it comes when the slot has moved, and the channel with it.
func (n *node) refused(refusal redis.Error, now time.Time) error {
	s := n.service
	lasting := redis.HasErrorPrefix(refusal, "NOPERM") || s.cfg.LacksCommand(refusal)
	s.mu.Lock()
	if len(n.sent) == 0 {
		s.mu.Unlock()
		return fmt.Errorf("%w: %w", errOutOfStep, refusal)
	}
	n.heard = now
	cmd := n.sent[0]
	n.answered()
	pending := slices.DeleteFunc(cmd.channels, func(ch *channel) bool { return !ch.askedAt(n) })
	var denied *channel
	switch {
	case !lasting:
		if len(pending) > 0 {
			s.stale[n.home] = struct{}{}
			s.retry(pending, now)
		}
	case len(cmd.names) > 1:
		n.askAlone(pending)
	case len(pending) == 1 && s.deny(pending[0], now):
		denied = pending[0]
	}
	level := slog.LevelDebug
	if denied != nil {
		level = s.denials.level(now)
	}
	s.mu.Unlock()

	if denied != nil {
		s.cfg.Logger.Log(s.ctx, level, "pubsub: subscription denied, waiters of this channel poll",
			"channel", keys.Told(denied.name), "retry_in", s.cfg.DeniedBackoff, "error", refusal)
	}
	return nil
}

// askAlone queues each of the channels for a command of its own, so that one of them cannot cause
// the refusal of all.
func (n *node) askAlone(channels []*channel) {
	for _, ch := range channels {
		ch.alone = true
		n.enqueue(ch)
	}
}

// deny postpones ch for DeniedBackoff, or forgets it if it has no listeners. It reports whether
// the refusal is news.
func (s *Service) deny(ch *channel, now time.Time) (news bool) {
	news = !ch.denied
	ch.denied = true
	if ch.idle() {
		s.forget(ch)
		return news
	}
	s.unplace(ch, now.Add(s.cfg.DeniedBackoff))
	return news
}

// oldest returns the command that the next reply answers, or nil if that command is not of the
// given kind.
func (n *node) oldest(v verb) *command {
	if len(n.sent) == 0 || n.sent[0].verb != v {
		return nil
	}
	return n.sent[0]
}

// answered drops the oldest command, so that the next one can be sent.
func (n *node) answered() {
	n.sent = slices.Delete(n.sent, 0, 1)
	poke(n.wake)
}

// askedAt reports whether n is still the node that must make ch live. While the command was on
// its way, ch may have gone, or have been sent elsewhere.
func (ch *channel) askedAt(n *node) bool { return ch.stage == asked && ch.node == n }
