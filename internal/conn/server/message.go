// The messages that a script's quiet form has noted, and their publishing.

package server

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn/call"
	"github.com/holdfast-go/holdfast/internal/conn/fault"
)

// script returns the form of the call's script that the request sends.
func (r *request) script() *call.Script {
	if r.Quiet {
		return r.call.Script.Hushed()
	}
	return r.call.Script
}

// Message is what a request publishes.
type Message struct{ command, channel, text string }

// messages returns the messages that the script has put into its reply to the request.
func (r *request) messages() []Message {
	if r.err != nil || !r.Quiet {
		return nil
	}
	values, _ := r.values.Val().([]any)
	_, noted := split(values)
	return noted
}

// split divides the reply of a quiet form into the script's own reply and the messages behind it.
// It returns nil for a reply that is not of that kind.
func split(values []any) (own []any, noted []Message) {
	last := len(values) - 1
	if last < 0 {
		return nil, nil
	}
	words, ok := values[last].([]any)
	if !ok || len(words)%3 != 0 {
		return nil, nil
	}
	for ; len(words) > 0; words = words[3:] {
		m, ok := messageOf(words[0], words[1], words[2])
		if !ok {
			return nil, nil
		}
		noted = append(noted, m)
	}
	return values[:last], noted
}

// messageOf returns the message of which a reply has these parts. ok is false if they make none: a
// reply must not make the Client send any other command.
func messageOf(command, channel, text any) (m Message, ok bool) {
	var isText bool
	m.command, _ = command.(string)
	m.channel, ok = channel.(string)
	m.text, isText = text.(string)
	return m, ok && isText && (m.command == "PUBLISH" || m.command == "SPUBLISH")
}

// tellFor bounds how long the caller of a script waits until its messages are published.
const tellFor = 500 * time.Millisecond

// Tell publishes messages, in their order, on the server that has answered the call. It gives up
// when ctx ends or a connection fails, and sends nothing twice. It is part of the call, so Close
// need not wait for it.
func (n *Node) Tell(ctx context.Context, c *call.Call, messages []Message) {
	if len(messages) == 0 || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellFor)
	defer cancel()
	for i := range messages {
		r := n.requests.get()
		r.call, r.message = &call.Call{Cleanup: c.Cleanup}, &messages[i]
		if !n.callers.do(ctx, r, nil) {
			return
		}
		failure := r.err
		n.requests.put(r)
		if failure != nil && !fault.IsReply(failure) {
			return
		}
	}
}
