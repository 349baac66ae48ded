// A call retries errors that pass by themselves until ctx ends, and reports other errors at once.
// Nothing is ever sent without the caller's knowledge.

package conn_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Errors that pass by themselves, of servers and of the network, are retried until ctx ends. Nothing is sent
// without the caller's knowledge: a script runs no more often than its call has attempts. A batch sends once.
func TestTransientErrorsAreRetried(t *testing.T) {
	const failures, wait = 5, 10 * time.Second
	for _, tc := range []struct {
		name         string
		fault        redistest.Fault
		mayRun, runs bool // the server may have executed the request, for all that the caller knows; it has
		closed       bool // the connection: then a batch is sent once more
	}{
		{"closed before", redistest.DropBefore, true, false, true},
		{"closed after", redistest.CloseAfterExec, true, true, true},
		{"half a reply", redistest.HalfReply, true, true, true},
		{"no reply", redistest.Silence, true, true, false},
		{"is no master", redistest.ReplyError("READONLY You can't write against a read only replica."), false, false, false},
		{"loads its data", loading, false, false, false},
	} {
		executed := func(sendings int) int {
			if tc.runs {
				return sendings
			}
			return 0
		}
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.warm(t)
				check := func(c *conn.Call, attempts, executions int) {
					t.Helper()
					_, unheard := c.Outstanding()
					if got := b.executions(t, c.Keys[0]); unheard != tc.mayRun || c.Attempts != attempts || got != executions {
						t.Errorf("%s: %d attempts, %d executions, outstanding %v, want %d, %d and %v",
							c.Keys[0], c.Attempts, got, unheard, attempts, executions, tc.mayRun)
					}
				}
				b.proxy.OnCommand(firstScripts(failures, tc.fault))
				c := newCount("passes")
				mustRun(t, b.Manager, c)
				check(c, failures+1, executed(failures)+1)

				b.proxy.OnCommand(firstScripts(1, tc.fault))
				c = newCount("batch")
				const bound = 900 * time.Millisecond // before it is sent beside
				ctx, begun := redistest.Within(t, bound), time.Now()
				err := runBatch(ctx, t, b.Manager, nodeOf(t, b.Manager, "k"), []*conn.Call{c})[0]
				if took := time.Since(begun); (err == nil) != tc.closed || took > bound {
					t.Errorf("a batch: %v, after %v", err, took)
				}
				if tc.closed {
					check(c, 2, executed(1)+1)
				} else {
					check(c, 1, executed(1))
				}

				b.proxy.OnCommand(onScripts(tc.fault))
				c = newCount("lasts")
				takes(t, wait, func() { err = runFor(wait, b.Manager, c) })
				mustMatch(t, err, context.DeadlineExceeded)
				mustMatch(t, err, errs.Unavailable)
				if !strings.Contains(fmt.Sprint(err), "last failure") {
					t.Errorf("%q does not say why", err)
				}
				if c.Attempts < 3 || c.Attempts > 100 {
					t.Errorf("%d attempts in %v, want one after a second, and more rarely where none is answered", c.Attempts, wait)
				}
				check(c, c.Attempts, executed(c.Attempts))
			})
		})
	}
}

// lateEnd is a context whose timer fires a moment after its deadline, as on a busy machine.
type lateEnd struct {
	context.Context
	deadline time.Time
}

func (c lateEnd) Deadline() (time.Time, bool) { return c.deadline, true }

func TestNothingIsSentAfterTheDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		b.occupy(t)() // so that a connection would be there for a second try
		b.proxy.OnCommand(onScripts(redistest.Silence))
		before := b.proxy.Count("EVALSHA")
		const wait = 500 * time.Millisecond
		why := fmt.Errorf("its bound: %w", errs.Unavailable)
		ends, cancel := context.WithTimeoutCause(t.Context(), wait+time.Millisecond, why)
		defer cancel()
		err := b.Run(lateEnd{ends, time.Now().Add(wait)}, newCount("k"))
		mustMatch(t, err, why)
		redistest.Equal(t, b.proxy.Count("EVALSHA")-before, 1, "sent %d times, want once")
	})
}

// While there is nothing to connect to, a call is retried. Only requests that were sent count as attempts.
func TestRefusedConnectionsAreRetried(t *testing.T) {
	var last socketLike
	usual := func(*redis.Options) {}
	for name, tc := range map[string]struct {
		before   func(t *testing.T, b *bubble)
		option   func(*redis.Options)
		attempts int
	}{
		"no connection":             {func(t *testing.T, b *bubble) { b.load(t, count) }, usual, 1},
		"one whose end is seen":     {func(t *testing.T, b *bubble) { b.warm(t); last.closed.Store(true) }, last.keepLast, 1},
		"one whose end is not seen": {func(t *testing.T, b *bubble) { b.warm(t) }, usual, 2}, // it is written to
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				tc.before(t, b)
				b.proxy.Refuse(true)
				b.proxy.Cut()
				time.Sleep(time.Second) // no request is under way meanwhile
				c := start(b.Manager, newCount("k"))
				time.Sleep(5 * time.Second)
				b.proxy.Refuse(false)
				served(t, maxRest+time.Second, c)
				if _, unheard := c.Outstanding(); unheard != (tc.attempts == 2) || c.Attempts != tc.attempts {
					t.Errorf("outstanding %v, %d attempts, want %d", unheard, c.Attempts, tc.attempts)
				}
			}, tc.option)
		})
	}
}

// go-redis takes the server's words for the answer to its HELLO, and reports only that the
// connection is closed. Once the server has room, calls are served.
func TestAServerWithTooManyClientsIsQuoted(t *testing.T) {
	const words = "ERR max number of clients reached"
	for name, change := range map[string]func(*redis.Options){
		"no password": func(*redis.Options) {},
		"a password":  func(o *redis.Options) { o.Username, o.Password = "app", "pw" },
		"a socket": dialBy(func(_ context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
			c, err := dial()
			return likeSocket(c), err
		}),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.server.RequireUserAuth("app", "pw")
				b.proxy.Receive(redistest.Full)
				err := runFor(time.Second, b.Manager, newCount("k"))
				if !errors.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), words) {
					t.Errorf("a call: %v, want what matches Unavailable and has the server's words", err)
				}
				rdb, err := b.Dial(nodeOf(t, b.Manager, "k"))
				redistest.Must(t, err)
				defer rdb.Close()
				if err := rdb.Subscribe(t.Context()).Ping(t.Context()); err == nil || !strings.Contains(err.Error(), words) {
					t.Errorf("a subscription: %v, want the server's words", err)
				}
				b.proxy.Receive(redistest.Open)
				if name == "a password" {
					b.warm(t)
				}
			}, change)
		})
	}
}

// A call that is retried for a long time is logged once, and many are logged once a minute.
func TestLongSilenceIsLogged(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.proxy.Refuse(true)
		for _, tc := range []struct {
			callers int
			wait    time.Duration
			want    int
		}{{1, 900 * time.Millisecond, 0}, {1, 30 * time.Second, 1}, {200, 3 * time.Minute, 3}} {
			for _, c := range b.callers(tc.callers) {
				time.AfterFunc(tc.wait, c.cancel)
			}
			time.Sleep(tc.wait + time.Second)
			if said := b.said("redis does not answer"); len(said) != tc.want {
				t.Errorf("%d calls in %v: %q, want %d", tc.callers, tc.wait, said, tc.want)
			}
		}
	})
}

// A MOVED to the server's own address fails only one call, although go-redis gives up the
// connection on which it came.
func TestMovedToTheSameAddressIsOneCallsFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		b.proxy.OnCommand(firstScripts(1, redistest.ReplyError("MOVED 1 "+b.proxy.Client(t).Options().Addr)))
		mustMatch(t, b.Run(t.Context(), newCount("k")), errs.BadArgument)
		mustRun(t, b.Manager, newCount("k"))
	})
}

// A cluster that needs longer for its table than most do, and be it for that alone, is waited for, up to the program's ReadTimeout.
func TestTheTableOfASlowClusterIsRead(t *testing.T) {
	for _, delay := range []time.Duration{1200 * time.Millisecond, 3 * time.Second, 8 * time.Second} {
		for _, all := range []bool{true, false} {
			t.Run(fmt.Sprint(delay, ", for all: ", all), func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *bubble) {
					b.onCluster(t)
					b.proxy.OnCommand(func(c redistest.Command) redistest.Fault {
						if all || c.Name == "CLUSTER" {
							return redistest.Delay(delay)
						}
						return redistest.Pass
					})
					redistest.Check(t, runFor(2*time.Minute, b.Manager, newCount("k")))
					time.Sleep(2 * time.Minute) // what was asked beside the call is answered
				})
			})
		}
	}
}

// A Manager asks how releases are told until a cluster answers, as every call does.
func TestHowReleasesAreToldIsAskedForUntilTheClusterAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		minute  func(b *bubble) // what happens then
		refuses bool
		want    []error
	}{
		"it answers at last": {minute: func(b *bubble) { b.proxy.Refuse(false) }},
		"its caller leaves":  {want: []error{context.DeadlineExceeded, errs.Unavailable}},
		"the Client closes":  {minute: func(b *bubble) { b.Interrupt() }, want: []error{errs.Closed}},
		"it refuses":         {refuses: true, want: []error{errs.Denied}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.onCluster(t)
				b.proxy.Refuse(!tc.refuses)
				if tc.refuses {
					b.proxy.OnCommand(func(redistest.Command) redistest.Fault {
						return redistest.ReplyError("NOAUTH Authentication required.")
					})
				}
				if tc.minute != nil {
					time.AfterFunc(time.Minute, func() { tc.minute(b) })
				}
				ctx := redistest.Within(t, 2*time.Minute)
				command, err := b.PublishCommand(ctx)
				if (command == "PUBLISH") != (tc.want == nil) {
					t.Errorf("%q, %v", command, err)
				}
				for _, want := range tc.want {
					mustMatch(t, err, want)
				}
				if ctx.Err() != nil && !strings.Contains(fmt.Sprint(err), "last failure") {
					t.Errorf("%v does not say why", err)
				}
			})
		})
	}
}

// maxRest is the longest pause before a dial.
const maxRest = 1200 * time.Millisecond
