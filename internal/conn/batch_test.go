// Each call of RunBatch has its own outcome, ctx bounds the whole batch, and RunBatch does not use a failed connection
// again. Callers share pipelines.

package conn_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Whatever becomes of its neighbours, each call has an outcome of its own: in a batch, and in the pipelines
// in which callers' requests go out.
func TestOutcomesAreEachTheirOwn(t *testing.T) {
	troubled := onKeys(map[string]redistest.Fault{
		"loading": loading, "denied": redistest.ReplyError("NOPERM User u has no permissions to run the 'evalsha' command"),
	})
	keys := []string{"a", "wrong", "b", "loading", "c", "denied", "d", "e", "wrong", "f"}
	ways := map[string]func(t *testing.T, b *bubble, calls []*conn.Call) []error{
		"a batch": func(t *testing.T, b *bubble, calls []*conn.Call) []error {
			return runBatch(t.Context(), t, b.Manager, nodeOf(t, b.Manager, "k"), calls)
		},
		"a pipeline": func(t *testing.T, b *bubble, calls []*conn.Call) (outcomes []error) {
			release := b.occupy(t)
			all := queued(b.Manager, len(calls), func(i int) *conn.Call { return calls[i] })
			b.proxy.OnCommand(troubled)
			release()
			time.Sleep(time.Second)
			for i, c := range all {
				if keys[i] == "loading" && !c.isDone() {
					c.cancel()
				}
				outcomes = append(outcomes, c.wait(t, time.Second))
			}
			return outcomes
		},
	}
	for name, run := range ways {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				redistest.Must(t, redistest.Err(b.server.Lpush("wrong", "x")))
				for round := range 3 { // in the first round the server does not have the script
					b.proxy.OnCommand(troubled)
					calls := counts(keys...)
					for i, err := range run(t, b, calls) {
						switch c := calls[i]; keys[i] {
						case "wrong":
							mustMatch(t, err, errs.WrongType)
						case "denied":
							mustMatch(t, err, errs.Denied)
						case "loading":
							if err == nil {
								t.Error("loading, and no error")
							}
						default:
							if err != nil || c.Status() != 1 || int(c.Int(2)) != round+1 || round > 0 && c.Attempts != 1 {
								t.Errorf("round %d, %s: %v, reply %v", round, keys[i], err, c.Reply)
							}
						}
						if _, unheard := calls[i].Outstanding(); unheard {
							t.Errorf("round %d, %s: answered, and yet outstanding", round, keys[i])
						}
					}
				}
			})
		})
	}
}

// A batch to a server that does not answer ends with its context. The next goes out on a new connection.
func TestBatchIsBounded(t *testing.T) {
	const limit = 300 * time.Millisecond
	for name, tc := range map[string]struct {
		fault       redistest.Fault
		limit, next time.Duration
	}{
		"silent":           {redistest.Silence, limit, 0},
		"delayed":          {redistest.Delay(10 * time.Second), limit, 0},
		"silent, for long": {redistest.Silence, 20 * time.Second, 5 * time.Second}, // the server has failed: dials pause
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.warm(t)
				node := nodeOf(t, b.Manager, "k")
				for range 2 { // the first makes the connection
					redistest.Must(t, renew(t, time.Hour, b.Manager))
					synctest.Wait()
				}
				b.proxy.OnCommand(onScripts(tc.fault))
				ctx := redistest.Within(t, tc.limit)
				started, lost := time.Now(), counts("a", "b")
				for i, err := range runBatch(ctx, t, b.Manager, node, lost) {
					if _, unheard := lost[i].Outstanding(); err == nil || !unheard {
						t.Errorf("call %d was not answered: %v, outstanding %v", i, err, unheard)
					}
				}
				redistest.Equal(t, time.Since(started), tc.limit, "returned after %v, want %v", tc.limit)

				b.proxy.BlackHole() // the silent connections stay silent
				b.proxy.OnCommand(nil)
				started = time.Now()
				if err := renew(t, time.Hour, b.Manager); err != nil || time.Since(started) > tc.next {
					t.Errorf("the next batch: %v, after %v", err, time.Since(started))
				}
			})
		})
	}
}

// Renewals have a connection of their own, so they do not queue behind callers. While that cannot be made,
// they go out on the callers' at once.
func TestBatchDoesNotStandBehindCallers(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		synctest.Wait() // the connection is free again
		b.proxy.OnCommand(onCommands(redistest.Silence, "HELLO"))
		renewed := func() {
			redistest.Check(t, renew(t, time.Second, b.Manager))
		}
		takes(t, 0, renewed)
		time.Sleep(300 * time.Millisecond) // so long that another is made beside it
		b.proxy.OnCommand(nil)
		release := b.occupy(t)
		all := queued(b.Manager, 50, numbered)
		takes(t, 0, renewed)
		release()
		served(t, time.Second, all...)
	})
}

// A connection that was closed while it was idle is no failure of the renewals for which it is used next: nothing
// was sent, so another is made.
func TestARenewalOutlastsAConnectionThatWasClosedWhileIdle(t *testing.T) {
	var last leftOpen
	inBubble(t, func(t *testing.T, b *bubble) {
		node := nodeOf(t, b.Manager, "k")
		for range 3 {
			runOnce(t, b.Manager, node)
			last.closed.Store(true)
			time.Sleep(time.Minute)
		}
	}, last.leaveOpen)

	inBubble(t, func(t *testing.T, b *bubble) { // nothing can be seen at the connection, as below TLS
		node := nodeOf(t, b.Manager, "k")
		for range 3 {
			runOnce(t, b.Manager, node)
			b.proxy.Cut()
			time.Sleep(time.Minute)
		}
	})
}

// runOnce fails the test unless two calls are answered.
func runOnce(t *testing.T, m *conn.Manager, node string) {
	t.Helper()
	for i, err := range m.RunOnce(t.Context(), time.Second, node, counts("k", "l")) {
		if err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// leftOpen is a connection at whose socket can be seen that the other end has closed it.
type leftOpen struct {
	net.Conn
	closed *atomic.Bool
}

// leaveOpen makes the client's connections leftOpen. c is the last of them.
func (c *leftOpen) leaveOpen(o *redis.Options) {
	dialBy(func(_ context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
		conn, err := dial()
		*c = leftOpen{conn, new(atomic.Bool)}
		return *c, err
	})(o)
}

func (c leftOpen) SyscallConn() (syscall.RawConn, error) { return seen{closed: c.closed}, nil }

type seen struct {
	healthy
	closed *atomic.Bool
}

func (s seen) Read(func(uintptr) bool) error {
	if s.closed.Load() {
		return io.EOF
	}
	return nil
}

// RunBatch notices a lost connection whatever else the batch met: the next connection may lead to
// another server, with another clock.
func TestLostConnectionIsNoticedBehindAFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		redistest.Must(t, redistest.Err(b.server.Lpush("wrong", "x")))
		b.warm(t)
		rule := onKeys(map[string]redistest.Fault{"lost": redistest.CloseAfterExec})
		var mu sync.Mutex
		sent, last := map[int64]string{}, int64(0) // by connection; and which one the renewal went on
		b.proxy.OnCommand(func(c redistest.Command) redistest.Fault {
			mu.Lock()
			defer mu.Unlock()
			sent[c.Conn] += " " + c.Name
			if slices.Contains(c.Args, "renewed") {
				last = c.Conn
			}
			return rule(c)
		})
		outcomes := runBatch(t.Context(), t, b.Manager, nodeOf(t, b.Manager, "k"), counts("wrong", "lost"))
		mustMatch(t, outcomes[0], errs.WrongType)
		if outcomes[1] == nil {
			t.Error("the lost call has no error")
		}
		if err := renew(t, time.Hour, b.Manager); err != nil || sent[last] != " HELLO TIME EVAL" {
			t.Errorf("the next batch: %v, sent %q", err, sent[last])
		}
	})
}

// Where Redis refuses EVAL, for want of the right or as it was renamed, and somebody else has loaded the scripts,
// renewals go by their hashes.
func TestRenewalsGoByTheirHashesWhereEvalIsRefused(t *testing.T) {
	for _, says := range []string{
		"NOPERM User app has no permissions to run the 'eval' command",
		"NOPERM this user has no permissions to run the 'eval' command or its subcommand",
		"ERR unknown command 'eval', with args beginning with: ",
		"ERR unknown command `eval`, with args beginning with: ",
	} {
		inBubble(t, func(t *testing.T, b *bubble) {
			b.load(t, count)
			b.proxy.OnCommand(onCommands(redistest.ReplyError(says), "EVAL"))
			for range 2 {
				if err := renew(t, time.Minute, b.Manager); err != nil {
					t.Errorf("%s: %v", says, err)
				}
			}
		})
	}
}

// Queued requests go out in the order in which they came. A pipeline is small enough to leave room
// for other clients of the server, and requests for the other wires.
func TestQueueGoesOutInOrder(t *testing.T) {
	for callers, most := range map[int]int64{
		300: (300+4)/5 + 1, // a fifth of what has queued or is on the four wires
		900: 128,
	} {
		t.Run(fmt.Sprint(callers), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.warm(t)
				release := b.occupy(t)
				calls := queued(b.Manager, callers, numbered)
				var mu sync.Mutex
				came := make(map[int64][]string) // by connection
				b.proxy.OnCommand(func(c redistest.Command) redistest.Fault {
					mu.Lock()
					defer mu.Unlock()
					came[c.Conn] = append(came[c.Conn], c.Args[2])
					return redistest.Pass
				})
				b.largest.Store(0)
				release()
				served(t, time.Second, calls...)
				for conn, keys := range came {
					if !slices.IsSorted(keys) {
						t.Errorf("connection %d: %v", conn, keys)
					}
				}
				redistest.Equal(t, b.largest.Load(), most, "the largest pipeline had %d commands, want %d", most)
			})
		})
	}
}

func TestScriptsAreLoadedWhereMissing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		flush := func() {
			t.Helper()
			redistest.Must(t, b.server.Client().ScriptFlush(t.Context()).Err())
		}
		b.warm(t)
		flush()
		c := newCount("alone")
		mustRun(t, b.Manager, c)
		if _, unheard := c.Outstanding(); unheard || c.Int(2) != 1 || c.Attempts != 2 {
			t.Errorf("alone: reply %v, %d attempts, outstanding %v, want one execution in 2 attempts", c.Reply, c.Attempts, unheard)
		}

		release := b.occupy(t)
		calls := queued(b.Manager, 20, numbered)
		synctest.Wait()
		flush()
		release()
		for i, c := range calls {
			if err := c.wait(t, time.Second); err != nil || c.Int(2) != 1 {
				t.Errorf("queued %d: %v, reply %v", i, err, c.Reply)
			}
		}

		flush()
		batch := counts("b1", "b2", "b3", "b4", "b5")
		for i, err := range runBatch(t.Context(), t, b.Manager, nodeOf(t, b.Manager, "b"), batch) {
			if err != nil || batch[i].Int(2) != 1 {
				t.Errorf("batch %d: %v, reply %v", i, err, batch[i].Reply)
			}
		}
	})
}
