// A kind can be played by commands in words, such as "acquire a".

package scripttest

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// Step is a command with its reply, the reply to a second sending, and what is left after each.
type Step struct{ Command, Reply, Again, Left string }

// Player sends commands to the scripts of one kind.
type Player struct {
	T   testing.TB
	RDB *redis.Client

	Parts func(command string) (s *conn.Script, keys []string, args []any)
	Words func(command string, reply []any) string // without the server's clock
	Left  func() string                            // what the server has
	Set   func(words []string) bool                // changes what the server has, if the words mean that
}

// Eval sends a command with a not-after that is in left.
func (p *Player) Eval(left time.Duration, command string) ([]any, error) {
	p.T.Helper()
	script, keys, args := p.Parts(command)
	return Send(p.T, p.RDB, left, script.Source(), keys, args...)
}

// Ask is Eval with the reply as text.
func (p *Player) Ask(left time.Duration, command string) string {
	p.T.Helper()
	reply, err := p.Eval(left, command)
	if err != nil {
		return Code(err)
	}
	return strings.TrimSpace(p.Words(command, reply))
}

// Do sends commands, in time, whatever their replies.
func (p *Player) Do(commands ...string) {
	p.T.Helper()
	for _, c := range commands {
		if !p.Set(strings.Fields(c)) {
			p.Ask(time.Minute, c)
		}
	}
}

// Play sends each command twice.
func Play[S ~struct{ Command, Reply, Again, Left string }](p *Player, steps []S) {
	p.T.Helper()
	for _, each := range steps {
		s := Step(each)
		if p.Set(strings.Fields(s.Command)) {
			continue
		}
		Twice(p.T, s.Command, s.Reply, s.Again, s.Left, func() string { return p.Ask(time.Minute, s.Command) }, p.Left)
	}
}
