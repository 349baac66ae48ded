// Servers, connections and sources fail in virtual time, and the Service recovers.

package pubsub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestLostConnectionIsReplaced(t *testing.T) {
	var reconnected atomic.Int32
	var log redistest.Log
	cfg := Config{Reconnected: func() { reconnected.Add(1) }, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	inBubble(t, cfg, func(t *testing.T, s *Service, r *redisServer, src *fakeSource) {
		subs := []*Subscription{joined(t, s, "one"), joined(t, s, "two")}
		for range 3 {
			r.last.get().Close()
			allSignalled(t, subs, s.cfg.MaxBackoff)
		}
		redistest.Equal(t, reconnected.Load(), 3, "Reconnected called %d times, want 3")
		if got := src.moved.get(); !slices.Equal(got, []string{"a", "a", "a"}) {
			t.Errorf("Moved called for %v, want a three times", got)
		}
		redistest.Equal(t, strings.Count(log.String(), "connection lost"), 1, "%d warnings in a short time, want 1")
		r.Publish("two", "0")
		mustSignal(t, subs[1], "on a message over the new connection")
		mustNotSignal(t, subs[0], "by a message of another channel")
	})
}

// obstacles are what may stand in the way of a subscription. Each returns what takes it away again.
var obstacles = map[string]func(t *testing.T, r *redisServer, src *fakeSource) (clear func()){
	"the server refuses":       dialling(func(*redisServer) (net.Conn, error) { return nil, errors.New("connection refused") }),
	"the server cannot be had": dialling(nil),
	"it reads nothing": dialling(func(*redisServer) (net.Conn, error) {
		ours, _ := net.Pipe()
		return ours, nil
	}),
	"it answers nothing": dialling(func(r *redisServer) (net.Conn, error) {
		conn, err := r.Dial()
		mute := &faultyConn{Conn: conn}
		mute.blackHole.Store(true)
		return mute, err
	}),
	"no server is known":    seeking(func(context.Context, string) (string, error) { return "", errors.New("slot is not served") }),
	"a server that is not":  seeking(func(context.Context, string) (string, error) { return "nowhere", nil }),
	"to look for one hangs": seeking(func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() }),
}

// dialling returns an obstacle for dials; nil: they hang.
func dialling(dial func(*redisServer) (net.Conn, error)) func(*testing.T, *redisServer, *fakeSource) func() {
	return func(_ *testing.T, r *redisServer, _ *fakeSource) func() {
		r.dial.set(func(ctx context.Context) (net.Conn, error) {
			if dial != nil {
				return dial(r)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		return func() { r.dial.set(nil) }
	}
}

// seeking returns an obstacle for those who ask for a channel's home.
func seeking(home func(context.Context, string) (string, error)) func(*testing.T, *redisServer, *fakeSource) func() {
	return func(_ *testing.T, _ *redisServer, src *fakeSource) func() {
		src.home.set(home)
		return func() { src.home.set(oneHome) }
	}
}

// Whatever stands in the way of a connection, the Service tries again at a bounded rate, and is there soon
// after nothing does. A channel that nobody waits for any more is forgotten meanwhile. Close does not wait.
func TestWhateverStandsInTheWay(t *testing.T) {
	for what, obstruct := range obstacles {
		for _, closes := range []bool{false, true} {
			inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, src *fakeSource) {
				sub := joined(t, s, "ch")
				joined(t, s, "lingering").Close()
				tries := func() int32 { return max(r.dials.Load(), src.asked.Load()) }
				before, clear := tries(), obstruct(t, r, src)
				r.last.get().Close()
				if closes {
					time.Sleep(s.cfg.MinBackoff)
					synctest.Wait()
					begun := time.Now()
					if s.Close(); time.Since(begun) != 0 {
						t.Errorf("%s: Close took %v", what, time.Since(begun))
					}
					return
				}
				time.Sleep(time.Minute)
				if got := tries() - before; got < 8 || got > 130 {
					t.Errorf("%s: %d tries in a minute", what, got)
				}
				mustNotSignal(t, sub, "without a connection")
				clear()
				signalledWithin(t, sub, s.cfg.ConnectTimeout+s.cfg.MaxBackoff)
				wantChannels(t, r, what, "ch")
			})
		}
	}
}

// A channel whose server is not known delays the others by one timeout at the most.
func TestOneChannelWithoutAHome(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, src *fakeSource) {
			src.home.set(func(ctx context.Context, channel string) (string, error) {
				if channel == "ch" {
					return "a", nil
				}
				if hangs {
					<-ctx.Done()
				}
				return "", errors.New("slot is not served")
			})
			s.Subscribe("homeless")
			most := time.Millisecond
			if hangs {
				most += s.cfg.ConnectTimeout
			}
			signalledWithin(t, s.Subscribe("ch"), most)
		})
	}
}

// The Service backs off from a server that confirms a subscription and then closes the connection.
func TestFlappingConnectionBacksOff(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
		sub := s.Subscribe("ch")
		start := time.Now()
		for time.Since(start) < time.Minute {
			<-sub.C()
			r.last.get().Close()
		}
		if got := r.dials.Load(); got > 130 {
			t.Errorf("dialled %d times in a minute", got)
		}
	})
}

// A connection that has fallen silent is replaced: after the heartbeat, or at once if an answer is due or a
// waiter that has missed a message says so.
func TestBlackHole(t *testing.T) {
	for what, tc := range map[string]struct {
		act   func(s *Service, sub *Subscription)
		limit func(c *Config) time.Duration
	}{
		"quiet":     {func(*Service, *Subscription) {}, func(c *Config) time.Duration { return c.Heartbeat + c.PongTimeout }},
		"suspected": {func(_ *Service, sub *Subscription) { sub.Suspect() }, func(c *Config) time.Duration { return c.PongTimeout }},
		"asked":     {func(s *Service, _ *Subscription) { s.Subscribe("other") }, func(c *Config) time.Duration { return c.PongTimeout }},
	} {
		inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
			sub := joined(t, s, "ch")
			r.last.get().blackHole.Store(true)
			r.Publish("ch", "0")
			mustNotSignal(t, sub, "through a black hole")
			tc.act(s, sub)
			limit := tc.limit(&s.cfg)
			if took := signalledWithin(t, sub, 2*limit); took > limit+s.cfg.MinBackoff {
				t.Errorf("%s: noticed after %v, want %v", what, took, limit)
			}
			redistest.Equal(t, r.dials.Load(), 2, "dialled %d times, want 2 (%s)", what)
			r.Publish("ch", "0")
			mustSignal(t, sub, "over the new connection")
			r.last.get().blackHole.Store(true)
			time.Sleep(s.cfg.Heartbeat)
			begun := time.Now()
			if s.Close(); time.Since(begun) != 0 {
				t.Errorf("%s: Close took %v", what, time.Since(begun))
			}
		})
	}
}

// A suspicion costs a live connection one PING, however many subscriptions report it. It costs
// nothing if the channel is not live yet or has gone.
func TestLiveConnectionSuspected(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
		sub := s.Subscribe("ch")
		sub.Suspect()
		mustSignal(t, sub, "on confirmation")
		r.pings()
		for round := range 3 {
			r.mu.Lock() // a PING is not answered before the last suspicion
			for range 10 {
				sub.Suspect()
			}
			r.mu.Unlock()
			mustNotSignal(t, sub, "by a PING")
			redistest.Equal(t, r.pings(), 1, "%d PINGs, want 1 (round %d)", round)
		}
		sub.Close()
		sub.Suspect()
		synctest.Wait()
		if got := r.pings(); got != 0 || r.dials.Load() != 1 {
			t.Errorf("%d PINGs for one who has gone, dialled %d times", got, r.dials.Load())
		}
	})
}

func TestDeniedChannel(t *testing.T) {
	for _, refusal := range []string{
		"NOPERM this user has no permissions to access one of the channels used as arguments",
		"ERR unknown command 'SUBSCRIBE', with args beginning with: 'denied'",
	} {
		deniedChannel(t, refusal)
	}
}

func deniedChannel(t *testing.T, refusal string) {
	var log redistest.Log
	lacks := func(err error) bool { return strings.Contains(err.Error(), "unknown command") }
	inBubble(t, Config{LacksCommand: lacks, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}, func(t *testing.T, s *Service, r *redisServer, src *fakeSource) {
		r.refuse.set(func(verb string, channels []string) string {
			if verb == "SUBSCRIBE" && slices.Contains(channels, "denied") {
				return refusal
			}
			return ""
		})
		names := []string{"denied"}
		for i := range 50 {
			names = append(names, fmt.Sprint("ch", i))
		}
		s.Subscribe(names...) // all at once, so that all names go out in one command
		denied := s.Subscribe("denied")
		var allowed []*Subscription
		for _, name := range names[1:] {
			allowed = append(allowed, s.Subscribe(name))
		}
		for _, sub := range allowed {
			mustSignal(t, sub, "though it was asked for together with a denied channel")
		}
		mustNotSignal(t, denied, "though denied")

		r.got("")
		time.Sleep(10*time.Minute + time.Second)
		redistest.Equal(t, len(r.got("SUBSCRIBE")), 20, "the denied channel was asked for %d times in 10 minutes, want 20")
		redistest.Equal(t, strings.Count(log.String(), "subscription denied"), 1, "%d warnings, want 1")
		// Two dials are allowed: if the denied channel had a home before all others, it had a
		// connection for itself.
		if got := r.dials.Load(); got > 2 {
			t.Errorf("dialled %d times: a denied channel must not cost the connection", got)
		}
		if got := src.moved.get(); len(got) != 0 {
			t.Errorf("Moved called for %v: rights say nothing of the topology", got)
		}

		r.last.get().Close()
		allSignalled(t, allowed, s.cfg.MinBackoff)
		// One command is enough. It takes some if the connection stood before the last channel had
		// a home.
		if got := len(r.got("SUBSCRIBE")); got < 1 || got > len(allowed)/2 {
			t.Errorf("the %d allowed channels took %d commands after a reconnection, want few again", len(allowed), got)
		}

		r.refuse.set(nil)
		signalledWithin(t, denied, s.cfg.DeniedBackoff)
	})
}

// A reply that does not fit the order of commands and answers ends the connection.
func TestReplyOutOfStep(t *testing.T) {
	replies := map[string]func(w *server.Writer){
		"confirmation": pushFrame("subscribe", "ch"),
		"pattern":      pushFrame("psubscribe", "ch"),
		"PONG":         func(w *server.Writer) { w.WriteInline("PONG") },
		"error":        func(w *server.Writer) { w.WriteError("ERR nothing was asked") },
		"number":       func(w *server.Writer) { w.WriteInt(1) },
	}
	for name, reply := range replies {
		inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
			sub := joined(t, s, "ch")
			r.inject(reply)
			signalledWithin(t, sub, s.cfg.MinBackoff)
			redistest.Equal(t, r.dials.Load(), 2, "dialled %d times, want 2 (%s)", name)
		})
	}
}

// Everything happens at once: owners come and go, messages flow, connections break.
func TestStress(t *testing.T) {
	inBubble(t, Config{Linger: 50 * time.Millisecond}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
		s.Subscribe("first").Close()
		synctest.Wait() // there is a connection to break
		var owners sync.WaitGroup
		for seed := range 20 {
			owners.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(seed)))
				pause := func(d time.Duration) { time.Sleep(time.Duration(random.Int64N(int64(d)))) }
				for range 100 {
					name := fmt.Sprint("ch", random.IntN(10))
					sub := s.Subscribe(name)
					select {
					case <-sub.C():
					case <-time.After(20 * time.Second):
						t.Errorf("%s not live for 20 s", name)
					}
					pause(20 * time.Millisecond)
					sub.Close()
					pause(200 * time.Millisecond)
				}
			})
		}
		var over atomic.Bool
		var chaos sync.WaitGroup
		chaos.Go(func() {
			for random := rand.New(rand.NewPCG(2, 2)); !over.Load(); time.Sleep(time.Duration(random.Int64N(int64(time.Second)))) {
				if random.IntN(4) == 0 {
					r.last.get().blackHole.Store(true)
				} else {
					r.last.get().Close()
				}
			}
		})
		chaos.Go(func() {
			for i := 0; !over.Load(); i++ {
				r.Publish(fmt.Sprint("ch", i%10), "0")
				time.Sleep(time.Millisecond)
			}
		})
		owners.Wait()
		over.Store(true)
		chaos.Wait()
		time.Sleep(10 * time.Second)
		assertEmpty(t, s)
		wantChannels(t, r, "after all")
	})
}
