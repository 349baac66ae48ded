// Each call of RunBatch has its own outcome, ctx bounds the whole batch, and RunBatch does not use
// a failed connection again.

package conn_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func nodeOf(t testing.TB, m *conn.Manager, key string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	node, err := m.Node(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if known := m.KnownNode(key); known != node {
		t.Errorf("the known node is %q, where it is %q", known, node)
	}
	return node
}

func TestBatchOutcomesAreEachTheirOwn(t *testing.T) {
	server := redistest.Server(t)
	if err := server.Admin().LPush(t.Context(), "wrong", "x").Err(); err != nil {
		t.Fatal(err)
	}
	proxy := redistest.Proxy(t, server.Addr())
	m := newManager(t, proxy.Client(t))
	node := nodeOf(t, m, "k")
	proxy.OnCommand(func(c redistest.Command) redistest.Fault {
		if c.Name != "EVALSHA" && c.Name != "EVAL" {
			return redistest.Pass
		}
		switch c.Args[2] {
		case "loading":
			return redistest.ReplyError("LOADING Redis is loading the dataset in memory")
		case "denied":
			return redistest.ReplyError("NOPERM User u has no permissions to run the 'evalsha' command")
		}
		return redistest.Pass
	})
	for round := range 3 { // in the first round the server does not have the script
		keys := []string{"a", "wrong", "b", "loading", "c", "denied", "d"}
		batch := make([]*conn.Call, len(keys))
		for i, key := range keys {
			batch[i] = newCount(key)
		}
		outcomes := runBatch(t.Context(), t, m, node, batch)
		if len(outcomes) != len(batch) {
			t.Fatalf("%d outcomes for %d calls", len(outcomes), len(batch))
		}
		for i, key := range keys {
			err, call := outcomes[i], batch[i]
			switch key {
			case "wrong":
				mustMatch(t, err, errs.WrongType)
			case "denied":
				mustMatch(t, err, errs.Denied)
			case "loading":
				if err == nil {
					t.Error("loading, and no error")
				}
			default:
				if err != nil || call.Status() != 1 || int(call.Int(2)) != round+1 {
					t.Errorf("round %d, %s: %v, reply %v", round, key, err, call.Reply)
				}
			}
			if _, unheard := call.Outstanding(); unheard {
				t.Errorf("round %d, %s: answered, and yet outstanding", round, key)
			}
		}
	}
}

func TestBatchIsBoundedByItsContext(t *testing.T) {
	const limit = 300 * time.Millisecond
	for name, fault := range map[string]redistest.Fault{
		"silent":    redistest.Silence,
		"delayed":   redistest.Delay(10 * time.Second),
		"handshake": nil,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.warm(t)
				node := nodeOf(t, b.Manager, "k")
				batch := func(keys ...string) []*conn.Call {
					calls := make([]*conn.Call, len(keys))
					for i, key := range keys {
						calls[i] = newCount(key)
					}
					return calls
				}
				b.proxy.OnCommand(onScripts(fault))
				if fault == nil {
					b.proxy.OnCommand(onCommands(redistest.Silence, "HELLO"))
				}
				started := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				lost := batch("a", "b")
				outcomes := runBatch(ctx, t, b.Manager, node, lost)
				cancel()
				if fault == nil { // the callers' connection works, and the batch uses it
					if took := time.Since(started); took >= limit || outcomes[0] != nil || outcomes[1] != nil {
						t.Errorf("%v after %v", outcomes, took)
					}
					return
				}
				if took := time.Since(started); took != limit {
					t.Errorf("returned after %v, want %v", took, limit)
				}
				for i, err := range outcomes {
					if err == nil {
						t.Errorf("call %d was not answered, and has no error", i)
					}
					if _, unheard := lost[i].Outstanding(); unheard != (fault != nil) {
						t.Errorf("call %d: outstanding %v", i, unheard)
					}
				}

				// The silent connections stay silent; the next batch goes out on a new connection.
				b.proxy.BlackHole()
				b.proxy.OnCommand(nil)
				again := batch("c", "d")
				started = time.Now()
				for i, err := range runBatch(t.Context(), t, b.Manager, node, again) {
					if err != nil || again[i].Status() != 1 {
						t.Errorf("the next batch, call %d: %v", i, err)
					}
				}
				if took := time.Since(started); took != 0 {
					t.Errorf("the next batch took %v", took)
				}
			})
		})
	}
}

// If the context sets no bound, RunBatch gives up a silent server by itself.
func TestBatchToASilentServerEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		node := nodeOf(t, b.Manager, "k")
		b.proxy.OnCommand(onScripts(redistest.Silence))
		started := time.Now()
		if err := runBatch(context.Background(), t, b.Manager, node, []*conn.Call{newCount("k")})[0]; err == nil {
			t.Error("no error")
		}
		if took := time.Since(started); took != time.Second {
			t.Errorf("took %v, want 1s", took)
		}
	})
}

// Renewals have a connection of their own, so they do not queue behind callers.
func TestBatchDoesNotStandBehindCallers(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		node := nodeOf(t, b.Manager, "k")
		release := b.occupy(t)
		queued := make([]*started, 50)
		for i := range queued {
			queued[i] = start(b.Manager, newCount(fmt.Sprint("queued", i)))
		}
		c := newCount("k")
		begun := time.Now()
		if err := runBatch(t.Context(), t, b.Manager, node, []*conn.Call{c})[0]; err != nil || time.Since(begun) != 0 {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		release()
		for _, q := range queued {
			if err := q.wait(t, time.Second); err != nil {
				t.Error(err)
			}
		}
	})
}

// RunBatch notices a lost connection whatever else the batch met: the next connection may lead to
// another server, with another clock.
func TestLostConnectionIsNoticedBehindAFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		if _, err := b.server.Lpush("wrong", "x"); err != nil {
			t.Fatal(err)
		}
		b.warm(t)
		node := nodeOf(t, b.Manager, "k")
		b.proxy.OnCommand(func(c redistest.Command) redistest.Fault {
			if isScript(c) && c.Args[2] == "lost" {
				return redistest.CloseAfterExec
			}
			return redistest.Pass
		})
		outcomes := runBatch(t.Context(), t, b.Manager, node, []*conn.Call{newCount("wrong"), newCount("lost")})
		mustMatch(t, outcomes[0], errs.WrongType)
		if outcomes[1] == nil {
			t.Error("the lost call has no error")
		}
		next := record(b.proxy)
		if err := runBatch(t.Context(), t, b.Manager, node, []*conn.Call{newCount("k")})[0]; err != nil {
			t.Fatal(err)
		}
		if got, want := next.String(), "HELLO TIME EVALSHA"; got != want {
			t.Errorf("the next batch sent %q, want %q", got, want)
		}
	})
}
