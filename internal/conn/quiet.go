// Quiet forms: the scripts for a server that refuses a script that publishes.
//
// Alibaba's cluster reads a script before it runs it, and by default refuses one that names a
// command of Pub/Sub. So each script that tells others has a second form, which NewScript makes: it
// returns its messages behind its reply, and the Client publishes them. The first request for such
// a script is loud. If the server refuses it, the call goes on quietly; and once a server has taken
// the quiet form of what it had refused, the Client sends nothing else.
//
// A message is published once, after the reply. If the reply is lost, so is the message: nothing
// needs one.

package conn

import (
	"context"
	_ "embed"
	"strings"
	"time"
)

//go:embed lua/quiet.lua
var quietSource string

// What Lua files call to tell others, and what they call instead in a quiet form. A server may take
// any mention for the command.
const (
	publishes = "publish("
	postpones = "postpone("
	asks      = "outsiders("
)

// quietForm returns the quiet form of a script with that body; nil if the script needs none.
func (s *Script) quietForm(body string) *Script {
	if !s.publishes() && !s.asks() {
		return nil
	}
	body = strings.ReplaceAll(uncommented(body), publishes, postpones)
	q := &Script{name: s.name, traits: s.traits | Mixed} // messages are texts
	q.source = uncommented(quietSource) + "return noted((function()\n" + body + "\nend)())\n"
	q.sha = digest(q.source)
	return q
}

// Quiet returns the text of the quiet form, as Redis gets it; "" if there is none.
func (s *Script) Quiet() string {
	if s.quiet == nil {
		return ""
	}
	return s.quiet.source
}

// uncommented returns a script without its comments. The lines stay, and so do their numbers.
func uncommented(source string) string {
	var b strings.Builder
	quote := byte(0) // the quote that ends the text in which i is; 0 outside of texts
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case quote != 0 && c == '\\':
			b.WriteByte(c)
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0 && strings.HasPrefix(source[i:], "--"):
			for i < len(source) && source[i] != '\n' {
				i++
			}
		}
		if i < len(source) {
			b.WriteByte(source[i])
		}
	}
	return b.String()
}

// refusesScript is what Alibaba's errors begin with if it refuses a script unread. Only behind it
// do they say why, in words that are not all documented.
const refusesScript = "ERR bad lua script for redis cluster"

// refusesToPublish reports whether err, the answer to the last request, may mean that the server
// refuses scripts that publish. Then the next request is quiet.
func (t *attempt) refusesToPublish(err error) bool {
	if t.quiet || !t.call.Script.refused(err) {
		return false
	}
	t.quiet = true
	return true
}

// refused reports whether err may refuse the loud form of a script that has a quiet one.
func (s *Script) refused(err error) bool {
	return s.quiet != nil && isReply(err) && strings.HasPrefix(err.Error(), refusesScript)
}

// hush reports whether to send the quiet form of a script.
func (m *Manager) hush(s *Script) bool { return s.quiet != nil && m.quiet.Load() }

// accepted records that a server has taken a request of the call. If it had refused the loud form,
// no other call tries that any more.
func (t *attempt) accepted() {
	if t.quiet && t.m.quiet.CompareAndSwap(false, true) {
		t.m.log.Info("holdfast: redis refuses scripts that publish, so the Client publishes after them")
	}
}

// script returns the form of the call's script that the request sends.
func (r *request) script() *Script {
	if r.quiet {
		return r.call.Script.quiet
	}
	return r.call.Script
}

// form returns the form of the call's script that the last request sent.
func (t *attempt) form() *Script {
	if t.quiet {
		return t.call.Script.quiet
	}
	return t.call.Script
}

// message is what a request publishes.
type message struct{ command, channel, text string }

// messages returns what the script that has answered the request has noted.
func (r *request) messages() []message {
	if r.err != nil || !r.quiet {
		return nil
	}
	values, _ := r.values.Val().([]any)
	_, noted := split(values)
	return noted
}

// split divides the reply of a quiet form into the script's own reply and the messages behind it.
// It returns nil for a reply that is not of that kind.
func split(values []any) (own []any, noted []message) {
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
func messageOf(command, channel, text any) (m message, ok bool) {
	var isText bool
	m.command, _ = command.(string)
	m.channel, ok = channel.(string)
	m.text, isText = text.(string)
	return m, ok && isText && (m.command == "PUBLISH" || m.command == "SPUBLISH")
}

// tellFor bounds how long the caller of a script waits until its messages are published.
const tellFor = 500 * time.Millisecond

// tell publishes messages, in their order, on the server that has answered the call. It gives up
// when ctx ends or a connection fails, and sends nothing twice. It is part of the call, so Close
// need not wait for it by itself.
func (m *Manager) tell(ctx context.Context, n *node, c *Call, messages []message) {
	if len(messages) == 0 || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellFor)
	defer cancel()
	for i := range messages {
		r := m.requests.get()
		r.call, r.message = &Call{Cleanup: c.Cleanup}, &messages[i]
		if !n.do(ctx, r, nil) {
			return
		}
		failure := r.err
		m.requests.put(r)
		if failure != nil && !isReply(failure) {
			return
		}
	}
}
