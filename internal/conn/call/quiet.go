// Quiet forms: the scripts for a server that refuses a script that publishes.
//
// Alibaba's cluster reads a script before it runs it, and by default refuses one that names a
// command of Pub/Sub. So each script that publishes has a second form, which NewScript makes: it
// returns its messages behind its reply, and the Client publishes them. The first request for such
// a script is loud. If the server refuses it, the call goes on quietly; and once a server has taken
// the quiet form of what it had refused, the Client sends nothing else.
//
// A message is published once, after the reply. If the reply is lost, so is the message: nothing
// needs one.

package call

import (
	"regexp"
	"strings"

	"github.com/holdfast-go/holdfast/internal/conn/fault"
)

// The functions that Lua files call to publish, and their names in a quiet form. A server may
// refuse a script for any mention of the command.
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
	q.source = uncommented(lua("quiet")) + "return noted((function()\n" + body + "\nend)())\n"
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

// lexeme is a text of Lua in its quotes, or a comment.
var lexeme = regexp.MustCompile(`(?s)'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|--[^\n]*`)

// uncommented returns a script without its comments. The lines stay, and so do their numbers.
func uncommented(source string) string {
	return lexeme.ReplaceAllStringFunc(source, func(found string) string {
		if strings.HasPrefix(found, "--") {
			return ""
		}
		return found
	})
}

// refusesScript is what Alibaba's errors begin with if it refuses a script unread. Only behind it
// do they say why, in words that are not all documented.
const refusesScript = "ERR bad lua script for redis cluster"

// Refused reports whether err may refuse the loud form of a script that has a quiet one.
func (s *Script) Refused(err error) bool {
	return s.quiet != nil && fault.IsReply(err) && strings.HasPrefix(err.Error(), refusesScript)
}
