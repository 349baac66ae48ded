// A kind can be played by commands in words, such as "acquire a".

package scripttest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
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
	Set   func(words []string) bool                // changes what the server has, if the words mean that; nil: none do
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

// set changes what the server has: by Set, or by a command of Redis, such as SET s 3.
func (p *Player) set(command string) bool {
	p.T.Helper()
	words := strings.Fields(command)
	if words[0] != strings.ToUpper(words[0]) {
		return p.Set != nil && p.Set(words)
	}
	redistest.Must(p.T, p.RDB.Do(context.Background(), Texts(command)[0]...).Err())
	return true
}

// Do sends commands, in time, whatever their replies.
func (p *Player) Do(commands ...string) {
	p.T.Helper()
	for _, c := range commands {
		if !p.set(c) {
			p.Ask(time.Minute, c)
		}
	}
}

// Play sends each command twice. "late acquire a" comes after its not-after. After "memory is short" a real server has
// none left; an embedded one always has enough, so there the play ends.
func Play[S ~struct{ Command, Reply, Again, Left string }](p *Player, steps []S) {
	p.T.Helper()
	for _, each := range steps {
		s := Step(each)
		switch {
		case s.Command == "memory is short":
			if err := p.RDB.ConfigSet(context.Background(), "maxmemory", "1").Err(); err != nil {
				if !strings.Contains(err.Error(), "unknown command") {
					p.T.Error(err)
				}
				return
			}
			p.T.Cleanup(func() { p.RDB.ConfigSet(context.Background(), "maxmemory", "0") })
			continue
		case p.set(s.Command):
			continue
		}
		left, command := time.Minute, s.Command
		if rest, late := strings.CutPrefix(command, "late "); late {
			left, command = -time.Millisecond, rest
		}
		Twice(p.T, s.Command, s.Reply, s.Again, s.Left, func() string { return p.Ask(left, command) }, p.Left)
	}
}

// Foreign has a value of another program at the key. Each command says so, and changes nothing.
func (p *Player) Foreign(mini *redistest.MiniServer, key string, commands ...string) {
	p.T.Helper()
	p.RDB.FlushAll(context.Background())
	p.RDB.Set(context.Background(), key, "precious", 0)
	for _, c := range commands {
		Unchanged(p.T, mini, c, "WRONGTYPE", func() ([]any, error) { return p.Eval(time.Minute, c) })
	}
}

// Midway has plays in which the last command is sent again and again, each time by a fresh player, and each time
// another command of its script fails. Left must find nothing amiss, and the next sending ends as if none had failed.
func Midway(mini *redistest.MiniServer, fresh func() *Player, plays [][]string) {
	for _, play := range plays {
		last := len(play) - 1
		var p *Player
		given := func() {
			p = fresh()
			p.Do(play[:last]...)
			p.Left()
		}
		ask := func() string { return p.Ask(time.Minute, play[last]) }
		given()
		reply, left := ask(), p.Left()
		again := ask()
		send := func() error { _, err := p.Eval(time.Minute, play[last]); return err }
		for k, err := range Failures(mini, given, send) {
			p.Left()
			if got, now := ask(), p.Left(); got != reply && got != again || now != left {
				p.T.Errorf("%q: command %d fails (%v), and then %q leaves %q, want %q and %q", play, k, err, got, now, reply, left)
			}
		}
	}
}

// AllOrNothing has plays whose last command either does all that it has to do, or says that it has failed and does
// nothing, whichever command of its script fails.
func (p *Player) AllOrNothing(mini *redistest.MiniServer, state func() string, plays [][]string) {
	p.T.Helper()
	for _, play := range plays {
		last := len(play) - 1
		given := func() {
			mini.FlushAll()
			p.Do(play[:last]...)
		}
		send := func() error { return redistest.Err(p.Eval(time.Minute, play[last])) }
		AllOrNothing(p.T, mini, play[last], given, send, state)
	}
}

// Option returns the number of an option of a command, such as of=3, or else the number that is given.
func Option(words []string, name string, number int) int {
	for _, word := range words {
		if text, ok := strings.CutPrefix(word, name+"="); ok {
			number, _ = strconv.Atoi(text)
		}
	}
	return number
}
