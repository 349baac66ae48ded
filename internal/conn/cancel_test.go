// A caller returns at once when its context ends, wherever its request is, and knows whether that request may still run.
// Clean-ups go on between Interrupt and Close, and nothing is left after Close.

package conn_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// places are where a call may be when its end comes. prepare makes the next call of the Manager get there.
var places = []struct {
	name    string
	prepare func(t *testing.T, b *bubble)
	sent    bool // its request is sent
}{
	{name: "at a silent server", sent: true, prepare: func(t *testing.T, b *bubble) {
		b.warm(t)
		b.proxy.OnCommand(onScripts(redistest.Silence))
	}},
	{name: "in a connection that went dead", sent: true, prepare: func(t *testing.T, b *bubble) {
		b.warm(t)
		b.occupy(t)() // so that all connections are open
		b.proxy.BlackHole()
		b.proxy.OnCommand(onCommands(redistest.Silence, "HELLO"))
	}},
	{name: "in the queue", prepare: func(t *testing.T, b *bubble) {
		b.behind(t, connections)
	}},
	{name: "dialling", prepare: func(_ *testing.T, b *bubble) { b.hangs.Store(true) }},
	{name: "dialling again, the clock being known", prepare: func(t *testing.T, b *bubble) {
		b.behind(t, 1)
		b.hangs.Store(true)
	}},
	{name: "in the handshake", prepare: func(_ *testing.T, b *bubble) {
		b.proxy.OnCommand(onCommands(redistest.Silence, "HELLO"))
	}},
	{name: "in the handshake, the clock being known", prepare: func(t *testing.T, b *bubble) {
		b.behind(t, 1)
		b.proxy.OnCommand(onCommands(redistest.Silence, "HELLO"))
	}},
	{name: "asking for the time", prepare: func(_ *testing.T, b *bubble) {
		b.proxy.OnCommand(onCommands(redistest.Silence, "TIME"))
	}},
	{name: "backing off", prepare: func(t *testing.T, b *bubble) {
		b.warm(t)
		b.proxy.OnCommand(onScripts(loading))
	}},
	{name: "backing off, nothing listening", prepare: func(_ *testing.T, b *bubble) { b.proxy.Refuse(true) }},
	{name: "while the table of a cluster loads", prepare: func(t *testing.T, b *bubble) {
		b.onCluster(t)
		b.proxy.OnCommand(func(redistest.Command) redistest.Fault { return redistest.Silence })
	}},
}

// behind has so many requests that are not answered be on their way, on a connection each.
func (b *bubble) behind(t *testing.T, n int) {
	t.Helper()
	b.warm(t)
	b.proxy.OnCommand(onScripts(redistest.Silence))
	others := queued(b.Manager, n, func(int) *conn.Call { return newCount("other") })
	t.Cleanup(func() {
		for _, c := range others {
			c.cancel()
			<-c.done
		}
	})
}

// ends are what may end a call. A deadline ends it if call is nil.
var ends = []struct {
	name string
	want error
	call func(c *started, m *conn.Manager)
}{
	{"its context is cancelled", context.Canceled, func(c *started, _ *conn.Manager) { c.cancel() }},
	{"its deadline passes", context.DeadlineExceeded, nil},
	{"Interrupt", errs.Closed, func(_ *started, m *conn.Manager) { m.Interrupt() }},
	{"Close", errs.Closed, func(_ *started, m *conn.Manager) { m.Close() }},
}

// Wherever a call is, it returns at once when its end comes, and knows whether its request may still run.
func TestEachEndReturnsAtOnce(t *testing.T) {
	// This time is shorter than every timeout, so that nothing else ends the call.
	const patience = 400 * time.Millisecond
	for _, place := range places {
		for _, end := range ends {
			t.Run(place.name+"/"+end.name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *bubble) {
					place.prepare(t, b)
					calls := make([]*started, 3*connections)
					begun := time.Now()
					for i := range calls {
						calls[i] = startFor(patience, b.Manager, newCount(fmt.Sprint("k", i)))
						if end.call != nil {
							calls[i] = start(b.Manager, newCount(fmt.Sprint("k", i)))
						}
						synctest.Wait()
					}
					time.Sleep(patience - time.Nanosecond)
					for i, c := range calls {
						if c.isDone() {
							t.Fatalf("caller %d returned before its end: %v", i, c.err)
						}
					}
					time.Sleep(time.Nanosecond)
					for _, c := range calls {
						if end.call != nil {
							end.call(c, b.Manager)
						}
					}
					for i, c := range calls {
						mustMatch(t, c.wait(t, 50*time.Millisecond), end.want)
						if took := c.ended.Sub(begun); took > patience {
							t.Errorf("caller %d returned %v after the end", i, took-patience)
						}
					}
					notAfter, unheard := calls[0].Outstanding()
					if unheard != place.sent || unheard && calls[0].Attempts != 1 {
						t.Errorf("outstanding: %v, want %v; %d attempts", unheard, place.sent, calls[0].Attempts)
					}
					if unheard && notAfter != begun.Add(conn.Window).UnixMicro() {
						t.Errorf("outstanding until %d, want %v after the sending", notAfter, conn.Window)
					}
					if end.want == errs.Closed {
						mustMatch(t, b.Run(t.Context(), newCount("k")), errs.Closed)
						return
					}
					b.hangs.Store(false)
					b.proxy.OnCommand(nil)
					b.proxy.Refuse(false)
					mustRun(t, b.Manager, newCount("afterwards"))
					if !unheard && b.executions(t, "k0") != 0 {
						t.Error("a call that was not outstanding has run")
					}
				})
			})
		}
	}
}

// A request that reaches the server after its not-after changes nothing.
func TestNotAfterBoundsALateRequest(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		name    string
		until   time.Duration // until when the call is of use; 0 for no such limit
		anyTime bool
		bound   time.Duration
	}{
		{"by default", 0, false, conn.Window},
		{"of a lease that ends later", 10 * time.Second, false, conn.Window},
		{"of a lease that ends sooner", 100 * ms, false, 100 * ms},
		{"of a renewal", 10 * time.Second, true, 10 * time.Second},
		{"of a renewal of a lease that ends soon", 100 * ms, true, 100 * ms},
	} {
		for held, runs := range map[time.Duration]bool{tc.bound - ms: true, tc.bound + ms: false} {
			t.Run(fmt.Sprint(tc.name, "/runs:", runs), func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *bubble) {
					b.warm(t)
					released := make(chan struct{})
					b.proxy.OnCommand(firstScripts(1, redistest.HoldUntil(released)))
					call, sent := newCount("k"), time.Now()
					if tc.until != 0 {
						call.Until, call.AnyTime = sent.Add(tc.until), tc.anyTime
					}
					c := start(b.Manager, call)
					synctest.Wait()
					c.cancel()
					<-c.done
					notAfter, unheard := c.Outstanding()
					if want := sent.Add(tc.bound).UnixMicro(); !unheard || notAfter != want {
						t.Errorf("outstanding %v until %d, want until %d", unheard, notAfter, want)
					}

					time.Sleep(held)
					close(released)
					synctest.Wait()
					redistest.Equal(t, b.executions(t, "k") == 1, runs, "%v, want %v (held for %v it has run)", runs, held)
				})
			})
		}
	}
}

// A call that prolongs a lease is given up when that lease is over. If its end, or that of its context, is over
// from the start, nothing is sent.
func TestCallForALeaseThatIsOverIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		sent, ended, over := record(b.proxy), newCount("k"), newCount("k")
		over.Until = time.Now()
		mustMatch(t, b.Run(t.Context(), over), errs.Lost)
		mustMatch(t, runFor(0, b.Manager, ended), context.DeadlineExceeded)
		if sent.String() != "" || over.Attempts != 0 || ended.Attempts != 0 {
			t.Errorf("sent %q in %d and %d attempts", sent, over.Attempts, ended.Attempts)
		}

		b.proxy.OnCommand(onScripts(loading))
		for _, anyTime := range []bool{false, true} {
			c := newCount("k")
			begun := time.Now()
			c.Until, c.AnyTime = begun.Add(3*time.Second), anyTime
			mustMatch(t, b.Run(t.Context(), c), errs.Lost)
			if took := time.Since(begun); took < 3*time.Second || took > 3250*time.Millisecond {
				t.Errorf("given up after %v, want 3s and at most a backoff", took)
			}
		}
	})
}

// A clean-up runs between Interrupt and Close, even if Interrupt cut its connection. It does not
// run after Close.
func TestCleanupGoesOnUntilClose(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		cleanup := func(key string) *conn.Call {
			return &conn.Call{Script: count, Keys: []string{key}, Cleanup: true}
		}
		b.proxy.OnCommand(firstScripts(2*connections, redistest.Silence))
		under := make([]*started, 3*connections)
		for i := range under {
			under[i] = start(b.Manager, cleanup(fmt.Sprint("under way", i)))
		}
		synctest.Wait()
		b.Interrupt()
		b.Interrupt() // a second Interrupt changes nothing
		for i, c := range under {
			if err := c.wait(t, 10*time.Second); err != nil {
				t.Errorf("under way %d: %v", i, err)
			}
		}
		mustRun(t, b.Manager, cleanup("begun after"))
		mustMatch(t, b.Run(t.Context(), newCount("k")), errs.Closed)

		b.proxy.OnCommand(onScripts(redistest.Silence))
		last := start(b.Manager, cleanup("last"))
		synctest.Wait()
		b.Close()
		mustMatch(t, last.wait(t, 50*time.Millisecond), errs.Closed)
		mustMatch(t, b.Run(t.Context(), cleanup("k")), errs.Closed)
		b.Close()
		synctest.Wait()
		redistest.Equal(t, b.proxy.Conns(), 0, "%d connections after Close")
	})
}

// Interrupt ends a caller that was about to send when Interrupt looked.
func TestInterruptMissesNobody(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		proxy := redistest.Mini(t).Proxy()
		proxy.OnCommand(func(redistest.Command) redistest.Fault { return redistest.Silence })
		rdb := proxy.Client(t)
		for range redistest.Count(t, 20_000) {
			m, err := conn.New(rdb, slog.New(slog.DiscardHandler), conn.Events{})
			redistest.Must(t, err)
			takes(t, 0, func() {
				var wg sync.WaitGroup
				for range connections {
					wg.Go(func() { mustMatch(t, m.Run(context.Background(), newCount("k")), errs.Closed) })
				}
				wg.Go(m.Interrupt)
				wg.Wait()
				m.Close()
			})
			if t.Failed() {
				return
			}
		}
	})
}
