// A Manager estimates the server's clock, never ahead of it, and a step of that clock costs one
// attempt.

package conn_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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
			takes(t, 0, func() { mustRun(t, b.Manager, c) })
			if c.Attempts != want || c.Status() != 1 {
				t.Errorf("status %d in %d attempts, want success in %d", c.Status(), c.Attempts, want)
			}
			if _, unheard := c.Outstanding(); unheard {
				t.Error("what was answered late is outstanding")
			}
		}
		redistest.Equal(t, b.executions(t, "k"), 3, "%d executions, want 3")

		b.server.SetTime(time.Now().Add(time.Hour))
		batch := counts("k", "k", "k")
		for i, err := range runBatch(t.Context(), t, b.Manager, nodeOf(t, b.Manager, "k"), batch) {
			if err != nil || batch[i].Status() != 1 {
				t.Errorf("batch %d: %v, reply %v", i, err, batch[i].Reply)
			}
		}
		redistest.Equal(t, b.executions(t, "k"), 6, "%d executions, want 6")
	})
}

// A reply that takes just longer than the server is given is heard, since a read tries once more; but the estimate of
// the server's clock is behind by as much, so the script was too late. The next request has longer.
func TestAServerThatNeedsJustMoreThanItIsGivenIsServed(t *testing.T) {
	for _, given := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
		t.Run(given.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.proxy.OnCommand(func(redistest.Command) redistest.Fault {
					return redistest.Delay(given + 500*time.Microsecond)
				})
				redistest.Check(t, runFor(time.Minute, b.Manager, newCount("k")))
			}, func(o *redis.Options) { o.ReadTimeout = 10 * time.Second })
		})
	}
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
		redistest.Equal(t, c.ServerTime(), back.UnixMicro(), "the server's time is %d, want %d", back.UnixMicro())

		b.proxy.OnCommand(onScripts(redistest.Silence))
		next := newCount("next")
		mustMatch(t, runFor(100*time.Millisecond, b.Manager, next), context.DeadlineExceeded)
		notAfter, unheard := next.Outstanding()
		if limit := back.Add(conn.Window).UnixMicro(); !unheard || notAfter > limit {
			t.Errorf("the next request may run until %d, want at most %d", notAfter, limit)
		}
	})
}

// A caller must not be busy if a script says late for ever, or if the server's clock runs away. It follows
// NOSCRIPT, MOVED and ASK at once, but it pauses if they do not end.
func TestLateIsNeverTriedHot(t *testing.T) {
	const wait = 10 * time.Second
	for _, message := range []string{"", "NOSCRIPT No matching script. Please use EVAL.", "MOVED 1 127.0.0.1:1", "ASK 1 127.0.0.1:1"} {
		t.Run(message, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.warm(t)
				if message != "" {
					b.proxy.OnCommand(onScripts(redistest.ReplyError(message)))
				}
				c := &conn.Call{Script: late, Keys: []string{"k"}}
				err := runFor(wait, b.Manager, c)
				if err == nil || c.Attempts > 100 {
					t.Errorf("%v after %d attempts in %v", err, c.Attempts, wait)
				}
				if message == "" {
					mustMatch(t, err, context.DeadlineExceeded)
					mustMatch(t, err, errs.Unavailable)
				}
			})
		})
	}
}
