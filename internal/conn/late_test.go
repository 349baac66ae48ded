// A Manager estimates the server's clock, never ahead of it, and a step of that clock costs one
// attempt.

package conn_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestServerClockSteppedForwardCostsOneAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		b.server.SetTime(time.Now().Add(time.Minute))
		for _, want := range []int{2, 1, 1} { // the first call learns of the step
			c := newCount("k")
			started := time.Now()
			mustRun(t, b.Manager, c)
			if c.Attempts != want || c.Status() != 1 {
				t.Errorf("status %d in %d attempts, want success in %d", c.Status(), c.Attempts, want)
			}
			if took := time.Since(started); took != 0 {
				t.Errorf("took %v", took)
			}
			if _, unheard := c.Outstanding(); unheard {
				t.Error("what was answered late is outstanding")
			}
		}
		if got := b.executions(t, "k"); got != 3 {
			t.Errorf("%d executions, want 3", got)
		}

		node := nodeOf(t, b.Manager, "k")
		b.server.SetTime(time.Now().Add(time.Hour))
		batch := []*conn.Call{newCount("k"), newCount("k"), newCount("k")}
		for i, err := range runBatch(t.Context(), t, b.Manager, node, batch) {
			if err != nil || batch[i].Status() != 1 {
				t.Errorf("batch %d: %v, reply %v", i, err, batch[i].Reply)
			}
		}
		if got := b.executions(t, "k"); got != 6 {
			t.Errorf("%d executions, want 6", got)
		}
	})
}

func TestServerClockSteppedBackIsFollowed(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		back := time.Now().Add(-time.Minute)
		b.server.SetTime(back)
		c := newCount("k")
		mustRun(t, b.Manager, c)
		if c.Attempts != 1 || c.Status() != 1 {
			t.Errorf("status %d in %d attempts", c.Status(), c.Attempts)
		}
		if c.ServerTime() != back.UnixMicro() {
			t.Errorf("the server's time is %d, want %d", c.ServerTime(), back.UnixMicro())
		}

		notAfter := outstandingOf(t, b, "next")
		if limit := back.Add(conn.Window).UnixMicro(); notAfter > limit {
			t.Errorf("the next request may run until %d, want at most %d", notAfter, limit)
		}
	})
}

// outstandingOf sends a request that is held, and returns its not-after.
func outstandingOf(t *testing.T, b *bubble, key string) int64 {
	t.Helper()
	held := make(chan struct{})
	node := nodeOf(t, b.Manager, key)
	b.proxy.OnCommand(firstScripts(1, redistest.HoldUntil(held)))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c := newCount(key)
	if err := runBatch(ctx, t, b.Manager, node, []*conn.Call{c})[0]; err == nil {
		t.Fatal("answered, though its request was held")
	}
	close(held)
	notAfter, unheard := c.Outstanding()
	if !unheard {
		t.Fatal("not outstanding")
	}
	return notAfter
}

// A caller must not be busy if a script says late for ever, or if the server's clock runs away.
func TestLateIsNeverTriedHot(t *testing.T) {
	const wait = 10 * time.Second
	inBubble(t, func(t *testing.T, b *bubble) {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		c := &conn.Call{Script: late, Keys: []string{"k"}}
		err := b.Run(ctx, c)
		mustMatch(t, err, context.DeadlineExceeded)
		mustMatch(t, err, errs.Unavailable)
		if c.Attempts > 100 {
			t.Errorf("%d attempts in %v", c.Attempts, wait)
		}
	})
}

// A call follows NOSCRIPT, MOVED and ASK at once, but it pauses if they do not end.
func TestRedirectionsAreNeverFollowedHot(t *testing.T) {
	const wait = 10 * time.Second
	for _, message := range []string{
		"NOSCRIPT No matching script. Please use EVAL.",
		"MOVED 1 127.0.0.1:1",
		"ASK 1 127.0.0.1:1",
	} {
		t.Run(message, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.warm(t)
				b.proxy.OnCommand(onScripts(redistest.ReplyError(message)))
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				c := newCount("k")
				if err := b.Run(ctx, c); err == nil {
					t.Error("no error")
				}
				if c.Attempts > 100 {
					t.Errorf("%d attempts in %v", c.Attempts, wait)
				}
			})
		})
	}
}
