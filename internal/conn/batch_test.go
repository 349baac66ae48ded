// Each call of RunBatch has its own outcome, ctx bounds the whole batch, and RunBatch does not use
// a failed connection again.

package conn_test

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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
				if _, err := b.server.Lpush("wrong", "x"); err != nil {
					t.Fatal(err)
				}
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
					if err := renew(t, time.Hour, b.Manager); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				b.proxy.OnCommand(onScripts(tc.fault))
				ctx, cancel := context.WithTimeout(t.Context(), tc.limit)
				defer cancel()
				started, lost := time.Now(), counts("a", "b")
				for i, err := range runBatch(ctx, t, b.Manager, node, lost) {
					if _, unheard := lost[i].Outstanding(); err == nil || !unheard {
						t.Errorf("call %d was not answered: %v, outstanding %v", i, err, unheard)
					}
				}
				if took := time.Since(started); took != tc.limit {
					t.Errorf("returned after %v, want %v", took, tc.limit)
				}

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
			if err := renew(t, time.Second, b.Manager); err != nil {
				t.Error(err)
			}
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
	var closed atomic.Pointer[atomic.Bool] // that of the last connection
	inBubble(t, func(t *testing.T, b *bubble) {
		node := nodeOf(t, b.Manager, "k")
		for range 3 {
			runOnce(t, b.Manager, node)
			closed.Load().Store(true)
			time.Sleep(time.Minute)
		}
	}, dialBy(func(_ context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
		c, err := dial()
		its := new(atomic.Bool)
		closed.Store(its)
		return leftOpen{c, its}, err
	}))

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
		if _, err := b.server.Lpush("wrong", "x"); err != nil {
			t.Fatal(err)
		}
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
