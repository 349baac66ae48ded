// Each call of RunBatch has its own outcome, ctx bounds the whole batch, and RunBatch does not use a failed connection
// again. Callers share pipelines.

package conn_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
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
							if err != nil || c.Status() != 1 || int(c.Int(2)) != round+1 {
								t.Errorf("round %d, %s: %v, reply %v", round, keys[i], err, c.Reply)
							}
						}
						_, unheard := calls[i].Outstanding()
						if n := calls[i].Attempts; unheard || round > 0 && n != 1 && keys[i] != "loading" {
							t.Errorf("round %d, %s: answered, and yet outstanding: %v, in %d attempts", round, keys[i], unheard, n)
						}
					}
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
	var last socketLike
	for name, tc := range map[string]struct {
		closed func(b *bubble)
		option func(*redis.Options)
	}{
		"its end is seen":                   {func(*bubble) { last.closed.Store(true) }, last.keepLast},
		"nothing can be seen, as below TLS": {func(b *bubble) { b.proxy.Cut() }, func(*redis.Options) {}},
	} {
		inBubble(t, func(t *testing.T, b *bubble) {
			node := nodeOf(t, b.Manager, "k")
			for range 3 {
				for i, err := range b.RunOnce(t.Context(), time.Second, node, counts("k", "l")) {
					if err != nil {
						t.Errorf("%s: call %d: %v", name, i, err)
					}
				}
				tc.closed(b)
				time.Sleep(time.Minute)
			}
		}, tc.option)
	}
}

// keepLast has the client's connections look like sockets. c is the last of them.
func (c *socketLike) keepLast(o *redis.Options) {
	dialBy(func(_ context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
		conn, err := dial()
		*c = likeSocket(conn)
		return *c, err
	})(o)
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
