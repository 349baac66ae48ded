package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// proxied returns the proxy of an embedded server, a client that goes through it, and a client that
// goes straight to the server.
func proxied(t *testing.T, opts ...func(*redis.Options)) (p *FaultProxy, through, straight *redis.Client) {
	t.Helper()
	m := Mini(t)
	p = m.Proxy()
	return p, p.Client(t, append([]func(*redis.Options){once}, opts...)...), m.Client()
}

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

func isCut(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// A fault meets one command alone, or exactly the third of five in a pipeline: the replies before it
// arrive, and the test knows how many commands the server ran.
func TestProxyFaultsMeetOneCommand(t *testing.T) {
	for _, tc := range []struct {
		name    string
		fault   Fault
		failed  func(error) bool
		alone   string  // the counter then
		replies []int64 // 0 is an error
		counter string
	}{
		{"pass", Pass, nil, "1", []int64{1, 2, 3, 4, 5}, "5"},
		{"close after exec", CloseAfterExec, isCut, "1", []int64{1, 2, 0, 0, 0}, "3"},
		{"silence", Silence, isTimeout, "1", []int64{1, 2, 0, 0, 0}, "5"},
		{"drop before", DropBefore, isCut, "", []int64{1, 2, 0, 0, 0}, "2"},
		{"half a reply", HalfReply, isCut, "1", []int64{1, 2, 0, 0, 0}, "3"},
		{"duplicate", Duplicate, nil, "2", []int64{1, 2, 4, 5, 6}, "6"},
		{"delay", Delay(time.Second), nil, "1", []int64{1, 2, 3, 4, 5}, "5"},
		{"error", ReplyError("OOM full"), func(err error) bool { return redis.HasErrorPrefix(err, "OOM") }, "", []int64{1, 2, 0, 3, 4}, "4"},
	} {
		for _, protocol := range []int{2, 3} {
			inBubble(t, fmt.Sprintf("RESP%d %s", protocol, tc.name), func(t *testing.T) {
				p, c, straight := proxied(t, func(o *redis.Options) { o.Protocol = protocol })
				p.OnCommand(Nth("incr", 1, tc.fault))
				err := c.Incr(testContext(t), "alone").Err()
				if tc.failed == nil && err != nil || tc.failed != nil && !tc.failed(err) {
					t.Errorf("err = %v", err)
				}
				wantValue(t, straight, "alone", tc.alone)
				Equal(t, p.Count("INCR"), 1, "%d INCR")
				p.OnCommand(Nth("INCR", 3, tc.fault))
				for i, cmd := range incrPipeline(t, c, "n", 5) {
					got, err := cmd.(*redis.IntCmd).Result()
					// go-redis puts the error of the bad reply on a pipeline's good replies too.
					if got != tc.replies[i] || tc.replies[i] == 0 && err == nil {
						t.Errorf("reply %d = %d, %v, want %d", i+1, got, err, tc.replies[i])
					}
				}
				wantValue(t, straight, "n", tc.counter)
			})
		}
	}
}

func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { Bubble(t, test) })
}

func incrPipeline(t *testing.T, c *redis.Client, key string, size int) []redis.Cmder {
	cmds, _ := c.Pipelined(testContext(t), func(pipe redis.Pipeliner) error {
		for range size {
			pipe.Incr(context.Background(), key)
		}
		return nil
	})
	return cmds
}

// The proxy counts confirmations channel by channel, and does not count messages as replies. So it
// meets the command behind a subscription exactly.
func TestProxyUnderstandsSubscriptions(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		inBubble(t, fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			p, c, straight := proxied(t, func(o *redis.Options) { o.Protocol = protocol })
			ctx := testContext(t)
			ps := c.Subscribe(ctx, "a", "b")
			defer ps.Close()
			expectMessages(t, ps, "subscribe a", "subscribe b")
			straight.Publish(ctx, "a", "1")
			expectMessages(t, ps, "message a 1")
			Must(t, ps.PSubscribe(ctx, "p*"))
			expectMessages(t, ps, "psubscribe p*")
			Must(t, ps.Unsubscribe(ctx))
			first, second := receive(t, ps), receive(t, ps) // in the server's order
			if first == second || first != "unsubscribe a" && first != "unsubscribe b" {
				t.Errorf("unsubscribed by %q and %q", first, second)
			}
			p.OnCommand(Nth("PING", 1, CloseAfterExec))
			Must(t, ps.Ping(ctx))
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
		Equal(t, receive(t, ps), w, "received %q, want %q", w)
	}
}
