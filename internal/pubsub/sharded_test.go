// Sharded channels live on two masters, in virtual time.

package pubsub

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestShardedOneConnectionPerHome(t *testing.T) {
	inShardedBubble(t, Config{}, func(t *testing.T, s *Service, a, b *redisServer, _ *fakeSource) {
		var subs []*Subscription
		for i := range 200 {
			tag := i % 20
			subs = append(subs, s.Subscribe(fmt.Sprintf("%c:%d:{%d}", "ab"[i%2], i, tag)))
		}
		for _, sub := range subs {
			mustSignal(t, sub, "on confirmation")
		}
		for _, r := range []*redisServer{a, b} {
			redistest.Equal(t, r.dials.Load(), 1, "dialled %d times")
			redistest.Equal(t, len(r.PubSubChannels("")), 100, "%d channels on the server, want 100")
			assertOneSlotEach(t, r.got("SSUBSCRIBE"))
		}
		b.Publish("b:1:{1}", "0")
		mustSignal(t, subs[1], "on a message")
		mustNotSignal(t, subs[3], "by a message of another channel")

		for _, sub := range subs[2:] {
			sub.Close()
		}
		time.Sleep(s.cfg.Linger)
		mustSignal(t, s.Subscribe("a:0:{0}"), "at once")
		for _, r := range []*redisServer{a, b} {
			redistest.Equal(t, len(r.PubSubChannels("")), 1, "%d channels on the server, want 1")
			assertOneSlotEach(t, r.got("SUNSUBSCRIBE"))
		}
	})
}

func assertOneSlotEach(t *testing.T, commands []string) {
	t.Helper()
	if len(commands) == 0 {
		t.Error("no such command was sent")
	}
	for _, c := range commands {
		channels := strings.Fields(c)[1:]
		for _, ch := range channels {
			if keys.Slot(ch) != keys.Slot(channels[0]) {
				t.Errorf("%s names several slots", c)
			}
		}
	}
}

// A server that gives a slot away ends the subscriptions to its channels of its own accord.
func TestSlotMovesAway(t *testing.T) {
	inShardedBubble(t, Config{}, func(t *testing.T, s *Service, a, b *redisServer, src *fakeSource) {
		moves, stays := joined(t, s, "a-moves"), joined(t, s, "a-stays")
		src.home.set(func(context.Context, string) (string, error) { return "b", nil })
		a.inject(pushFrame("sunsubscribe", "a-moves"))
		signalledWithin(t, moves, s.cfg.MinBackoff)
		if got := src.moved.get(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("Moved called for %v, want a", got)
		}
		b.Publish("a-moves", "0")
		mustSignal(t, moves, "on a message from the new home")
		mustNotSignal(t, stays, "though it has not moved")
		a.Publish("a-stays", "0")
		mustSignal(t, stays, "on a message from the old home")
		redistest.Equal(t, a.dials.Load(), 1, "dialled the old home %d times: channels that stay keep their connection")
	})
}

func TestMovedReply(t *testing.T) {
	inShardedBubble(t, Config{}, func(t *testing.T, s *Service, a, b *redisServer, src *fakeSource) {
		a.refuse.set(func(_ string, channels []string) string {
			if channels[0] == "a-moved" {
				return "MOVED 1 127.0.0.1:7001"
			}
			return ""
		})
		stays := joined(t, s, "a-stays")
		moved := s.Subscribe("a-moved")

		// The source's view of the cluster stays stale for a while.
		time.Sleep(10 * time.Second)
		mustNotSignal(t, moved, "by a server that has not got it")
		if got := len(a.got("SSUBSCRIBE")); got < 10 || got > 30 {
			t.Errorf("asked the old home %d times in 10 s, want about 15", got)
		}
		if len(src.moved.get()) == 0 {
			t.Error("Moved was not called")
		}
		src.home.set(func(context.Context, string) (string, error) { return "b", nil })
		signalledWithin(t, moved, s.cfg.MaxBackoff)
		mustNotSignal(t, stays, "by another channel's troubles")
		redistest.Equal(t, a.dials.Load()+b.dials.Load(), 2, "dialled %d times, want 2")
	})
}
