// A Subscription keeps its promises on one server, in virtual time; its log tells no secrets, and the documents its numbers.

package pubsub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// A subscription is signalled when it is live, and by messages; signals coalesce.
func TestSignalOnceLive(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
		sub := joined(t, s, "ch")
		mustNotSignal(t, sub, "without a reason")
		if got := r.PubSubNumSub("ch")["ch"]; got != 1 {
			t.Fatalf("NUMSUB = %d when signalled, want 1", got)
		}
		for range 10 {
			r.Publish("ch", "0")
		}
		mustSignal(t, sub, "on messages")
		mustNotSignal(t, sub, "twice")
	})
}

func TestSubscriptionsShareOneInRedis(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
		subs := make([]*Subscription, 1000)
		for i := range subs {
			subs[i] = s.Subscribe("ch")
		}
		for _, sub := range subs {
			mustSignal(t, sub, "on confirmation")
		}
		late := s.Subscribe("ch")
		mustSignal(t, late, "at once: the channel is live")
		if got := r.got("SUBSCRIBE"); len(got) != 1 {
			t.Fatalf("SUBSCRIBE sent %d times, want once", len(got))
		}
		for i := 0; i < len(subs); i += 2 {
			subs[i].Close()
		}
		r.Publish("ch", "0")
		for i, sub := range subs {
			if got, want := signalled(sub), i%2 == 1; got != want {
				t.Fatalf("subscription %d of 1000, even ones closed: signalled = %t", i, got)
			}
		}
		mustSignal(t, late, "on a message")
	})
}

func TestSubscribesAreBatched(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
		// The connection stands when all subscriptions are assigned to it.
		r.dial.set(func(context.Context) (net.Conn, error) { time.Sleep(time.Millisecond); return r.Dial() })
		const n = 1000
		var subs []*Subscription
		for i := range n {
			subs = append(subs, s.Subscribe(fmt.Sprint("ch", i)))
		}
		time.Sleep(time.Millisecond)
		for _, sub := range subs {
			mustSignal(t, sub, "on confirmation")
		}
		commands := r.got("SUBSCRIBE")
		if len(commands) != n/batch || r.dials.Load() != 1 {
			t.Fatalf("%d channels took %d commands and %d dials", n, len(commands), r.dials.Load())
		}
		for _, c := range commands {
			if got := len(strings.Fields(c)) - 1; got > batch {
				t.Fatalf("a command names %d channels", got)
			}
		}
		for _, sub := range subs {
			sub.Close()
		}
		keep := s.Subscribe("keep")
		defer keep.Close()
		time.Sleep(s.cfg.Linger)
		synctest.Wait()
		// All lingers end together, but each command takes only the channels that are due when it
		// is written.
		if got := len(r.got("UNSUBSCRIBE")); got < n/batch || got > n/10 {
			t.Fatalf("leaving %d channels took %d commands", n, got)
		}
		wantChannels(t, r, "after the linger", "keep")
	})
}

func TestLinger(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
		sub := joined(t, s, "ch")
		sub.Close()
		sub.Close()

		time.Sleep(5*time.Second - 1)
		wantChannels(t, r, "just before the linger ends", "ch")
		again := s.Subscribe("ch")
		mustSignal(t, again, "at once: the channel has lingered")
		mustNotSignal(t, sub, "though closed")
		time.Sleep(time.Minute)
		r.Publish("ch", "0")
		mustSignal(t, again, "on a message long after the first linger")
		if got := r.got("SUBSCRIBE"); len(got) != 1 {
			t.Fatalf("SUBSCRIBE sent %d times, want once", len(got))
		}

		again.Close()
		time.Sleep(5 * time.Second)
		wantChannels(t, r, "after the linger")
		assertEmpty(t, s)
		joined(t, s, "ch") // by a new connection
	})
}

func TestQuietConnectionStays(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
		sub := joined(t, s, "ch")
		r.pings()
		time.Sleep(24 * time.Hour)
		mustNotSignal(t, sub, "by a heartbeat")
		if got, most := r.pings(), int(24*time.Hour/s.cfg.Heartbeat); got > most || got < most-1 {
			t.Errorf("%d PINGs in a day, want %d", got, most)
		}
		r.Publish("ch", "0")
		mustSignal(t, sub, "after a quiet day")
		if got := r.dials.Load(); got != 1 {
			t.Fatalf("dialled %d times", got)
		}
	})
}

func TestSubscribeAfterClose(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
		before := joined(t, s, "ch")
		var closers sync.WaitGroup
		for range 10 {
			closers.Go(s.Close)
		}
		closers.Wait()
		after := s.Subscribe("ch")
		time.Sleep(time.Hour)
		mustNotSignal(t, after, "after Close")
		after.Close()
		before.Close()
		wantChannels(t, r, "after Close")
	})
}

// assertEmpty checks that the Service keeps nothing of channels that have gone.
func assertEmpty(t *testing.T, s *Service) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.channels)+len(s.nodes)+len(s.alarms)+len(s.stale) != 0 {
		t.Fatalf("left over: %d channels, %d nodes, %d alarms, %d stale homes",
			len(s.channels), len(s.nodes), len(s.alarms), len(s.stale))
	}
}

// The channel on which a Client hears of its grants ends in the Client's id. Anyone who knows that
// id could take over what the Client holds, so the log does not contain it.
func TestTheLogTellsNoClientsID(t *testing.T) {
	const id = "57a5b2ea-b287-8c0a-a5d0-64ca2becd714"
	const grants = "holdfast_lock_grant:{wanted}:" + id
	log := new(redistest.Log)
	inBubble(t, Config{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))},
		func(t *testing.T, s *Service, r *redisServer, src *fakeSource) {
			r.refuse.set(func(verb string, _ []string) string {
				if verb == "SUBSCRIBE" {
					return "NOPERM this user has no permissions to access one of the channels used as arguments"
				}
				return ""
			})
			s.Subscribe(grants)
			time.Sleep(time.Minute)
			src.home.set(func(context.Context, string) (string, error) { return "", errors.New("none") })
			r.last.get().Close()
			time.Sleep(time.Minute)
			s.Close()
			synctest.Wait()
		})
	if strings.Contains(log.String(), id) {
		t.Errorf("the log tells the id:\n%s", log)
	}
	for _, want := range []string{"denied", "no server found", "{wanted}:57a5b2ea…"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
	}
}

func TestTheDocumentsSayHowLongSubscriptionsLast(t *testing.T) {
	c := Config{}.withDefaults()
	doctest.Says(t, c.Linger, "docs/connecting.md", "as long as somebody waits, and {} longer")
	doctest.Says(t, c.Linger, "docs/architecture.md", "The subscription lingers for {}")
	doctest.Says(t, c.Linger, "docs/redisson-side-by-side.md", "kept for {} after the last waiter")
	doctest.Says(t, c.Heartbeat, "docs/connecting.md", "`PING` after {}")
	doctest.Says(t, c.PongTimeout, "docs/connecting.md", "nothing comes for {} more")
}
