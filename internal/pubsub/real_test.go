// What only redis-server itself can show: how it refuses a command for one channel of several, and what it
// sends when a slot moves.

package pubsub

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// patience is how long a wake-up may take on a busy machine.
const patience = time.Minute

// realSource is a Source over servers, which it finds by address. One channel has a home of its own.
type realSource struct {
	sharded bool
	user    string
	home    string
	moves   string       // the channel
	at      atomic.Value // its home
}

func (s *realSource) Home(_ context.Context, channel string) (string, error) {
	if channel == s.moves {
		return s.at.Load().(string), nil
	}
	return s.home, nil
}

func (s *realSource) Sharded(context.Context) (bool, error) { return s.sharded, nil }
func (s *realSource) Moved(string)                          {}

func (s *realSource) Dial(home string) (*redis.Client, error) {
	return redis.NewClient(&redis.Options{Addr: home, Username: s.user, Password: s.user}), nil
}

func TestRealDeniedChannel(t *testing.T) {
	server := redistest.Server(t)
	must := func(args ...any) {
		t.Helper()
		redistest.Must(t, server.Admin().Do(t.Context(), args...).Err())
	}
	must("ACL", "SETUSER", "u", "on", ">u", "+@all", "resetchannels", "&ok*")
	s := New(&realSource{user: "u", home: server.Addr()}, Config{DeniedBackoff: 50 * time.Millisecond})
	defer s.Close()
	s.Subscribe("ok0", "denied", "ok1") // one command
	denied := s.Subscribe("denied")
	for i := range 20 {
		signalledWithin(t, s.Subscribe(fmt.Sprint("ok", i)), patience)
	}
	if len(denied.C()) != 0 {
		t.Fatal("a denied channel was signalled")
	}
	must("ACL", "SETUSER", "u", "allchannels")
	signalledWithin(t, denied, patience)
}

// A slot moves from one master to another while a waiter waits on its channel.
func TestRealSlotMoves(t *testing.T) {
	if !redistest.HasShardedChannels(t) {
		t.Skip("before Redis 7 channels do not move")
	}
	c := redistest.Cluster(t, 2, 0)
	from := c.MasterOf("{moves}")
	to := c.Nodes()[0]
	if to == from {
		to = c.Nodes()[1]
	}
	src := &realSource{sharded: true, home: c.MasterOf("{stays}").Addr(), moves: "{moves}"}
	src.at.Store(from.Addr())
	s := New(src, Config{})
	defer s.Close()
	moves, stays := s.Subscribe("{moves}"), s.Subscribe("{stays}")
	signalledWithin(t, moves, patience)
	signalledWithin(t, stays, patience)
	src.at.Store(to.Addr())
	c.MoveSlot("{moves}")
	signalledWithin(t, moves, patience)
	for channel, sub := range map[string]*Subscription{"{moves}": moves, "{stays}": stays} {
		redistest.Must(t, c.MasterOf(channel).Admin().SPublish(t.Context(), channel, "0").Err())
		signalledWithin(t, sub, patience)
	}
}
