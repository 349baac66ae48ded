// A link must tell which frames from the server answer the command at the head of its queue, and
// which come unasked: messages and ended subscriptions.

package redistest

import (
	"slices"
	"strings"
)

// unsolicited reports whether f is not a reply to head, but a message or the notice of a
// subscription that the server ended of its own accord. It is called with mu held.
func (l *link) unsolicited(f frame, head *pending) bool {
	kind := ""
	if len(f.words) > 0 {
		kind = f.words[0]
	}
	switch f.kind {
	case '>':
		return !confirms(head.name, kind)
	case '*': // in RESP2 only a subscribed connection gets messages, and nearly nothing else
		if l.pushes || l.subscriptions() == 0 {
			return false
		}
		message := []string{"message", "pmessage", "smessage", "sunsubscribe"}
		return slices.Contains(message, kind) && !confirms(head.name, kind)
	}
	return false
}

// confirms reports whether a frame of this kind answers the command. The kind is the lower case
// name of the command, except that an embedded server answers SSUBSCRIBE with "subscribe".
func confirms(name, kind string) bool {
	kind = strings.ToUpper(kind)
	return isSubscription(name) && (kind == name || "S"+kind == name)
}

func isSubscription(name string) bool { return strings.HasSuffix(name, "SUBSCRIBE") }

func (l *link) subscriptions() int {
	n := 0
	for _, channels := range l.channels {
		n += len(channels)
	}
	return n
}

// count records one frame of the head's reply and reports whether it was the last: a
// subscription is confirmed channel by channel, every other reply has one frame. It is called
// with mu held.
func (l *link) count(f frame, head *pending) bool {
	if !isSubscription(head.name) || f.kind == '-' {
		return true
	}
	family, unsubscribes := subscriptionKind(head.name)
	channels := l.channels[family]
	if channels == nil {
		channels = map[string]bool{}
		l.channels[family] = channels
	}
	if head.frames == 0 {
		head.frames = head.args
		if head.args == 0 { // from all channels; even with none there is one frame
			head.frames = max(1, len(channels))
		}
	}
	if len(f.words) > 1 && unsubscribes {
		delete(channels, f.words[1])
	} else if len(f.words) > 1 {
		channels[f.words[1]] = true
	}
	head.frames--
	return head.frames == 0
}

func subscriptionKind(name string) (family string, unsubscribes bool) {
	rest, unsubscribes := strings.CutSuffix(name, "UNSUBSCRIBE")
	if !unsubscribes {
		rest = strings.TrimSuffix(name, "SUBSCRIBE")
	}
	return rest, unsubscribes
}
