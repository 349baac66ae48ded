package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// proxied returns a proxy, a client that goes through it, and a client that goes straight to the
// server.
func proxied(t *testing.T, opts ...func(*redis.Options)) (p *FaultProxy, through, straight *redis.Client) {
	t.Helper()
	s := Server(t)
	p = Proxy(t, s.Addr())
	return p, p.Client(t, append([]func(*redis.Options){once}, opts...)...), s.Client(t)
}

func impatient(o *redis.Options) { o.ReadTimeout = 300 * time.Millisecond }

func single(o *redis.Options) { o.PoolSize = 1 }

func wantValue(t *testing.T, c *redis.Client, key, want string) {
	t.Helper()
	got, err := c.Get(testContext(t), key).Result()
	if err != nil && err != redis.Nil || got != want {
		t.Errorf("%s = %q, %v, want %q", key, got, err, want)
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestProxyFaultsMeetOneCommand(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		for _, tc := range []struct {
			name     string
			fault    Fault
			failed   func(error) bool
			executed string
		}{
			{"pass", Pass, nil, "1"},
			{"close after exec", CloseAfterExec, func(err error) bool { return errors.Is(err, io.EOF) }, "1"},
			{"silence", Silence, isTimeout, "1"},
			{"drop before", DropBefore, func(err error) bool { return errors.Is(err, io.EOF) }, ""},
			{"half a reply", HalfReply, func(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }, "1"},
			{"duplicate", Duplicate, nil, "2"},
			{"delay", Delay(50 * time.Millisecond), nil, "1"},
			{"error", ReplyError("LOADING wait"), func(err error) bool { return redis.HasErrorPrefix(err, "LOADING") }, ""},
		} {
			t.Run(fmt.Sprintf("RESP%d %s", protocol, tc.name), func(t *testing.T) {
				p, c, straight := proxied(t, impatient, func(o *redis.Options) { o.Protocol = protocol })
				p.OnCommand(Nth("incr", 1, tc.fault))
				err := c.Incr(testContext(t), "n").Err()
				if tc.failed == nil && err != nil || tc.failed != nil && !tc.failed(err) {
					t.Errorf("err = %v", err)
				}
				wantValue(t, straight, "n", tc.executed)
				if err := c.Set(testContext(t), "after", "x", 0).Err(); err != nil {
					t.Errorf("the next command: %v", err)
				}
				if p.Count("INCR") != 1 || (p.Injected() == 1) != (tc.fault != Fault(Pass)) {
					t.Errorf("%d INCR, %d injected", p.Count("INCR"), p.Injected())
				}
			})
		}
	}
}

// In a pipeline of five commands, the fault meets exactly the third: the replies before it arrive,
// and the test knows how many commands the server ran.
func TestProxyFaultsAreExactInPipelines(t *testing.T) {
	for _, tc := range []struct {
		name    string
		fault   Fault
		want    []int64 // replies; 0 is an error
		counter string
	}{
		{"pass", Pass, []int64{1, 2, 3, 4, 5}, "5"},
		{"close after exec", CloseAfterExec, []int64{1, 2, 0, 0, 0}, "3"},
		{"silence", Silence, []int64{1, 2, 0, 0, 0}, "5"},
		{"drop before", DropBefore, []int64{1, 2, 0, 0, 0}, "2"},
		{"half a reply", HalfReply, []int64{1, 2, 0, 0, 0}, "3"},
		{"duplicate", Duplicate, []int64{1, 2, 4, 5, 6}, "6"},
		{"delay", Delay(20 * time.Millisecond), []int64{1, 2, 3, 4, 5}, "5"},
		{"error", ReplyError("OOM full"), []int64{1, 2, 0, 3, 4}, "4"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, c, straight := proxied(t, impatient)
			p.OnCommand(Nth("INCR", 3, tc.fault))
			cmds, _ := c.Pipelined(testContext(t), func(pipe redis.Pipeliner) error {
				for range 5 {
					pipe.Incr(context.Background(), "n")
				}
				return nil
			})
			for i, cmd := range cmds {
				got, err := cmd.(*redis.IntCmd).Result()
				// go-redis puts the error of the bad reply on a pipeline's good replies too.
				if got != tc.want[i] || tc.want[i] == 0 && err == nil {
					t.Errorf("reply %d = %d, %v, want %d", i+1, got, err, tc.want[i])
				}
			}
			wantValue(t, straight, "n", tc.counter)
		})
	}
}

func TestProxyDelaysARequestPastItsClientsEnd(t *testing.T) {
	p, c, straight := proxied(t, func(o *redis.Options) { o.ReadTimeout = 50 * time.Millisecond })
	late := make(chan struct{})
	p.OnCommand(Nth("SET", 1, HoldUntil(late)))
	if err := c.Set(testContext(t), "k", "late", 0).Err(); !isTimeout(err) {
		t.Fatalf("err = %v, want a timeout", err)
	}
	c.Close()
	wantValue(t, straight, "k", "")
	close(late)
	Eventually(t, patience, "the late request runs", func() error {
		return straight.Get(testContext(t), "k").Err()
	})
}

func TestProxyHoldsAReply(t *testing.T) {
	p, c, straight := proxied(t)
	release := make(chan struct{})
	p.OnCommand(Nth("INCR", 1, HoldReply(release)))
	done := make(chan error, 1)
	go func() { done <- c.Incr(context.Background(), "n").Err() }()
	Eventually(t, patience, "executed", func() error { return straight.Get(testContext(t), "n").Err() })
	select {
	case err := <-done:
		t.Fatalf("answered before the release: %v", err)
	default:
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestProxyBlackHole(t *testing.T) {
	p, c, straight := proxied(t, impatient, single)
	if err := c.Ping(testContext(t)).Err(); err != nil {
		t.Fatal(err)
	}
	p.BlackHole()
	if err := c.Set(testContext(t), "k", "v", 0).Err(); !isTimeout(err) {
		t.Errorf("err = %v, want a timeout", err)
	}
	wantValue(t, straight, "k", "")
	if err := c.Set(testContext(t), "k", "v2", 0).Err(); err != nil {
		t.Errorf("a new connection: %v", err)
	}
	wantValue(t, straight, "k", "v2")
}

func TestProxyRefuseAndCut(t *testing.T) {
	p, c, _ := proxied(t, single)
	if err := c.Ping(testContext(t)).Err(); err != nil {
		t.Fatal(err)
	}
	p.Refuse(true)
	if err := c.Ping(testContext(t)).Err(); err != nil {
		t.Errorf("the present connection: %v", err)
	}
	p.Cut()
	Eventually(t, patience, "connections are closed", func() error {
		if p.Conns() > 0 {
			return errStillThere
		}
		return nil
	})
	for range 2 { // the first attempt may still find the connection that was cut
		if err := c.Ping(testContext(t)).Err(); err == nil {
			t.Error("answered while refusing")
		}
	}
	p.Refuse(false)
	// The test uses a new client: after failures, go-redis's pool does not dial for a while.
	if err := p.Client(t).Ping(testContext(t)).Err(); err != nil {
		t.Errorf("accepting again: %v", err)
	}
}

// The proxy counts confirmations channel by channel, and does not count messages as replies. So it
// meets the command behind a subscription exactly.
func TestProxyUnderstandsSubscriptions(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			p, c, straight := proxied(t, func(o *redis.Options) { o.Protocol = protocol })
			ctx := testContext(t)
			ps := c.Subscribe(ctx, "a", "b")
			defer ps.Close()
			expectMessages(t, ps, "subscribe a", "subscribe b")
			straight.Publish(ctx, "a", "1")
			expectMessages(t, ps, "message a 1")
			if err := ps.PSubscribe(ctx, "p*"); err != nil {
				t.Fatal(err)
			}
			expectMessages(t, ps, "psubscribe p*")
			if err := ps.Unsubscribe(ctx); err != nil {
				t.Fatal(err)
			}
			first, second := receive(t, ps), receive(t, ps) // in the server's order
			if first == second || first != "unsubscribe a" && first != "unsubscribe b" {
				t.Errorf("unsubscribed by %q and %q", first, second)
			}
			p.OnCommand(Nth("PING", 1, CloseAfterExec))
			if err := ps.Ping(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := ps.ReceiveTimeout(ctx, 30*time.Second); err == nil {
				t.Error("the pong was delivered")
			}
		})
	}
}

func receive(t *testing.T, ps *redis.PubSub) string {
	t.Helper()
	msg, err := ps.ReceiveTimeout(testContext(t), 30*time.Second)
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	switch m := msg.(type) {
	case *redis.Subscription:
		return m.Kind + " " + m.Channel
	case *redis.Message:
		return "message " + m.Channel + " " + m.Payload
	}
	return fmt.Sprint(msg)
}

func expectMessages(t *testing.T, ps *redis.PubSub, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := receive(t, ps); got != w {
			t.Errorf("received %q, want %q", got, w)
		}
	}
}

func TestProxyIsTransparentUnderLoad(t *testing.T) {
	p, _, straight := proxied(t)
	c := p.Client(t, once, func(o *redis.Options) { o.PoolSize = 100; o.ReadTimeout = time.Minute; o.PoolTimeout = time.Minute })
	const clients, commands = 100, 1000
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			key := fmt.Sprintf("k%d", i)
			for n := int64(0); n < commands; n += 20 {
				if !incrPipeline(t, c, key, n, 20) {
					return
				}
			}
		})
	}
	wg.Wait()
	for i := range clients {
		wantValue(t, straight, fmt.Sprintf("k%d", i), fmt.Sprint(commands))
	}
	if got := p.Count("INCR"); got != clients*commands {
		t.Errorf("counted %d INCR, want %d", got, clients*commands)
	}
}

// incrPipeline increments size times and checks that each reply is its own.
func incrPipeline(t *testing.T, c *redis.Client, key string, from int64, size int) bool {
	cmds, err := c.Pipelined(context.Background(), func(pipe redis.Pipeliner) error {
		for range size {
			pipe.Incr(context.Background(), key)
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s: %v", key, err)
		return false
	}
	for i, cmd := range cmds {
		if got := cmd.(*redis.IntCmd).Val(); got != from+int64(i)+1 {
			t.Errorf("%s: reply %d after %d", key, got, from+int64(i))
			return false
		}
	}
	return true
}

// On many connections at once, each lost reply stands for exactly one execution.
func TestProxyLosesRepliesExactlyUnderLoad(t *testing.T) {
	p, _, straight := proxied(t)
	c := p.Client(t, once, func(o *redis.Options) { o.PoolSize = 50; o.ReadTimeout = time.Minute; o.PoolTimeout = time.Minute })
	p.OnCommand(func(cmd Command) Fault {
		if cmd.Name == "INCR" && cmd.N%7 == 0 {
			return CloseAfterExec
		}
		return Pass
	})
	var wg sync.WaitGroup
	var lost sync.Map
	for i := range 50 {
		wg.Go(func() {
			failures := 0
			for range 40 {
				if c.Incr(context.Background(), "n").Err() != nil {
					failures++
				}
			}
			lost.Store(i, failures)
		})
	}
	wg.Wait()
	total := 0
	lost.Range(func(_, n any) bool { total += n.(int); return true })
	if total == 0 || total != p.Injected() {
		t.Errorf("%d calls failed, %d faults injected", total, p.Injected())
	}
	wantValue(t, straight, "n", fmt.Sprint(50*40))
}
