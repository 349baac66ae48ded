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
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

func TestLostConnectionIsReplaced(t *testing.T) {
	var reconnected atomic.Int32
	log := &recorder{}
	cfg := Config{Reconnected: func() { reconnected.Add(1) }, Logger: slog.New(log)}
	inBubble(t, cfg, func(t *testing.T, s *Service, r *redisServer, src *fakeSource) {
		subs := []*Subscription{s.Subscribe("one"), s.Subscribe("two")}
		for _, sub := range subs {
			mustSignal(t, sub, "on confirmation")
		}
		for range 3 {
			r.last().Close()
			for _, sub := range subs {
				signalledWithin(t, sub, s.cfg.MaxBackoff)
			}
		}
		if got := reconnected.Load(); got != 3 {
			t.Errorf("Reconnected called %d times, want 3", got)
		}
		if got := src.movedCalls(); !slices.Equal(got, []string{"a", "a", "a"}) {
			t.Errorf("Moved called for %v, want a three times", got)
		}
		if got := log.count("connection lost"); got != 1 {
			t.Errorf("%d warnings in a short time, want 1", got)
		}
		r.Publish("two", "0")
		mustSignal(t, subs[1], "on a message over the new connection")
		mustNotSignal(t, subs[0], "by a message of another channel")
	})
}

func TestServerDownForLong(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
		sub, lingering := s.Subscribe("ch"), s.Subscribe("lingering")
		mustSignal(t, sub, "on confirmation")
		lingering.Close()
		r.setDial(func(context.Context) (net.Conn, error) { return nil, errors.New("connection refused") })
		r.last().Close()
		time.Sleep(time.Minute)
		if got := r.dialed(); got < 50 || got > 130 {
			t.Errorf("dialled %d times in a minute, want about 80", got)
		}
		mustNotSignal(t, sub, "without a connection")

		r.setDial(nil)
		signalledWithin(t, sub, s.cfg.MaxBackoff)
		if got := r.PubSubChannels(""); !slices.Equal(got, []string{"ch"}) {
			t.Errorf("PUBSUB CHANNELS = %v, want ch alone", got)
		}
	})
}

// The Service backs off from a server that confirms a subscription and then closes the connection.
func TestFlappingConnectionBacksOff(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
		sub := s.Subscribe("ch")
		start := time.Now()
		for time.Since(start) < time.Minute {
			<-sub.C()
			r.last().Close()
		}
		if got := r.dialed(); got > 130 {
			t.Errorf("dialled %d times in a minute", got)
		}
	})
}

func TestBlackHole(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
		sub := s.Subscribe("ch")
		mustSignal(t, sub, "on confirmation")
		r.last().blackHole.Store(true)
		r.Publish("ch", "0")
		mustNotSignal(t, sub, "through a black hole")

		limit := s.cfg.Heartbeat + s.cfg.PongTimeout
		if took := signalledWithin(t, sub, 2*limit); took > limit+s.cfg.MinBackoff {
			t.Errorf("noticed after %v, want %v", took, limit)
		}
		r.Publish("ch", "0")
		mustSignal(t, sub, "over the new connection")
	})
}

// A waiter that misses a message says so, and the Service then does not wait for the heartbeat.
func TestBlackHoleSuspected(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
		sub := s.Subscribe("ch")
		mustSignal(t, sub, "on confirmation")
		r.last().blackHole.Store(true)
		time.Sleep(s.cfg.Heartbeat / 2)
		sub.Suspect()
		if took := signalledWithin(t, sub, s.cfg.Heartbeat); took > s.cfg.PongTimeout+s.cfg.MinBackoff {
			t.Errorf("noticed after %v, want %v", took, s.cfg.PongTimeout)
		}
		if got := r.dialed(); got != 2 {
			t.Errorf("dialled %d times, want 2", got)
		}
	})
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
			if got := r.pings(); got != 1 {
				t.Errorf("round %d: %d PINGs, want 1", round, got)
			}
		}
		sub.Close()
		sub.Suspect()
		synctest.Wait()
		if got := r.pings(); got != 0 || r.dialed() != 1 {
			t.Errorf("%d PINGs for one who has gone, dialled %d times", got, r.dialed())
		}
	})
}

// If an answer is due, the Service does not wait for the heartbeat first.
func TestBlackHoleDuringSubscribe(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
		mustSignal(t, s.Subscribe("first"), "on confirmation")
		r.last().blackHole.Store(true)
		sub := s.Subscribe("ch")
		if took := signalledWithin(t, sub, 10*time.Second); took > s.cfg.PongTimeout+s.cfg.MinBackoff {
			t.Errorf("noticed after %v, want %v", took, s.cfg.PongTimeout)
		}
	})
}

// deafPipe returns a dial to a server that neither reads nor writes.
func deafPipe(t *testing.T) func(context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { theirs.Close() })
		return ours, nil
	}
}

// muteConn returns a dial to a server that takes all requests and never answers.
func muteConn(r *redisServer) func(context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) {
		conn, err := r.Dial()
		if err != nil {
			return nil, err
		}
		mute := &faultyConn{Conn: conn}
		mute.blackHole.Store(true)
		return mute, nil
	}
}

func TestHandshakeIsBounded(t *testing.T) {
	inBubble(t, Config{ConnectTimeout: 2 * time.Second}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
		r.setDial(muteConn(r))
		sub := s.Subscribe("ch")
		synctest.Wait()
		r.setDial(nil)
		took := signalledWithin(t, sub, 10*time.Second)
		if took < 2*time.Second || took > 2*time.Second+s.cfg.MinBackoff {
			t.Errorf("signalled after %v, want 2s", took)
		}
	})
}

func TestCloseWhileFrozen(t *testing.T) {
	tests := map[string]func(t *testing.T, s *Service, r *redisServer, src *fakeSource){
		"reading": func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
			mustSignal(t, s.Subscribe("ch"), "on confirmation")
			r.last().blackHole.Store(true)
			time.Sleep(s.cfg.Heartbeat)
		},
		"dialling": func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
			r.setDial(func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() })
			s.Subscribe("ch")
		},
		"writing HELLO": func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
			r.setDial(deafPipe(t))
			s.Subscribe("ch")
		},
		"reading HELLO": func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
			r.setDial(muteConn(r))
			s.Subscribe("ch")
		},
		"finding a home": func(t *testing.T, s *Service, _ *redisServer, src *fakeSource) {
			src.setHome(func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() })
			s.Subscribe("ch")
		},
		"backing off": func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
			r.setDial(func(context.Context) (net.Conn, error) { return nil, errors.New("connection refused") })
			s.Subscribe("ch")
			time.Sleep(time.Minute)
		},
	}
	for name, freeze := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, src *fakeSource) {
				freeze(t, s, r, src)
				synctest.Wait()
				start := time.Now()
				s.Close()
				if took := time.Since(start); took != 0 {
					t.Errorf("Close took %v", took)
				}
			})
		})
	}
}

func TestDeniedChannel(t *testing.T) {
	log := &recorder{}
	inBubble(t, Config{Logger: slog.New(log)}, func(t *testing.T, s *Service, r *redisServer, src *fakeSource) {
		r.setRefuse(func(verb string, channels []string) string {
			if verb == "SUBSCRIBE" && slices.Contains(channels, "denied") {
				return "NOPERM this user has no permissions to access one of the channels used as arguments"
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
		if got := len(r.got("SUBSCRIBE")); got != 20 {
			t.Errorf("the denied channel was asked for %d times in 10 minutes, want 20", got)
		}
		if got := log.count("denied"); got != 1 {
			t.Errorf("%d warnings, want 1", got)
		}
		// Two dials are allowed: if the denied channel had a home before all others, it had a
		// connection for itself.
		if got := r.dialed(); got > 2 {
			t.Errorf("dialled %d times: a denied channel must not cost the connection", got)
		}
		if got := src.movedCalls(); len(got) != 0 {
			t.Errorf("Moved called for %v: rights say nothing of the topology", got)
		}

		r.last().Close()
		for _, sub := range allowed {
			signalledWithin(t, sub, s.cfg.MinBackoff)
		}
		// One command is enough. It takes some if the connection stood before the last channel had
		// a home.
		if got := len(r.got("SUBSCRIBE")); got < 1 || got > len(allowed)/2 {
			t.Errorf("the %d allowed channels took %d commands after a reconnection, want few again", len(allowed), got)
		}

		r.setRefuse(nil)
		signalledWithin(t, denied, s.cfg.DeniedBackoff)
	})
}

func TestNoHome(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, src *fakeSource) {
		src.setHome(func(_ context.Context, channel string) (string, error) {
			if channel == "homeless" {
				return "", errors.New("slot is not served")
			}
			return "a", nil
		})
		homeless, sub := s.Subscribe("homeless"), s.Subscribe("ch")
		mustSignal(t, sub, "though another channel has no home")
		time.Sleep(time.Minute)
		if got := src.askedHomes(); got > 130 {
			t.Errorf("asked %d times in a minute", got)
		}
		mustNotSignal(t, homeless, "without a home")
		src.setHome(oneHome)
		signalledWithin(t, homeless, s.cfg.MaxBackoff)
	})
}

// A source that hangs for one channel costs the other channels at most one timeout.
func TestHomeHangsForOneChannel(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, src *fakeSource) {
		src.setHome(func(ctx context.Context, channel string) (string, error) {
			if channel == "hangs" {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "a", nil
		})
		s.Subscribe("hangs")
		sub := s.Subscribe("ch")
		signalledWithin(t, sub, s.cfg.ConnectTimeout+time.Millisecond)
	})
}

func TestUnknownServer(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Service, _ *redisServer, src *fakeSource) {
		src.setHome(func(context.Context, string) (string, error) { return "nowhere", nil })
		sub := s.Subscribe("ch")
		mustNotSignal(t, sub, "without a server")
		src.setHome(oneHome)
		signalledWithin(t, sub, s.cfg.MaxBackoff)
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
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
				sub := s.Subscribe("ch")
				mustSignal(t, sub, "on confirmation")
				r.inject(reply)
				signalledWithin(t, sub, s.cfg.MinBackoff)
				if got := r.dialed(); got != 2 {
					t.Errorf("dialled %d times, want 2", got)
				}
			})
		})
	}
}

// Everything happens at once: owners come and go, messages flow, connections break.
func TestStress(t *testing.T) {
	inBubble(t, Config{Linger: 50 * time.Millisecond}, func(t *testing.T, s *Service, r *redisServer, _ *fakeSource) {
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
		stop := make(chan struct{})
		var chaos sync.WaitGroup
		chaos.Go(func() {
			random := rand.New(rand.NewPCG(2, 2))
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(random.Int64N(int64(time.Second)))):
				}
				if random.IntN(4) == 0 {
					r.last().blackHole.Store(true)
				} else {
					r.last().Close()
				}
			}
		})
		chaos.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				r.Publish(fmt.Sprint("ch", i%10), "0")
			}
		})
		owners.Wait()
		close(stop)
		chaos.Wait()

		time.Sleep(10 * time.Second)
		assertEmpty(t, s)
		if got := r.PubSubChannels(""); len(got) != 0 {
			t.Errorf("PUBSUB CHANNELS = %v after all", got)
		}
	})
}
