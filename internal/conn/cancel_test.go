// A caller returns at once when its context ends, wherever its request is, and knows whether that
// request may still run.

package conn_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestCancelReturnsAtOnce(t *testing.T) {
	loading := redistest.ReplyError("LOADING Redis is loading the dataset in memory")
	// hang sets a Dialer that hangs while hanging is true.
	var hanging atomic.Bool
	hang := func(o *redis.Options) {
		dial := o.Dialer
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if hanging.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return dial(ctx, network, addr)
		}
	}
	for _, tc := range []struct {
		name    string
		opts    []func(*redis.Options)
		prepare func(t *testing.T, b *bubble) (undo func())
		sent    bool
	}{
		{name: "while the server is silent", sent: true,
			prepare: func(t *testing.T, b *bubble) func() {
				b.warm(t)
				b.proxy.OnCommand(onScripts(redistest.Silence))
				return nil
			}},
		{name: "in a connection that went dead", sent: true,
			prepare: func(t *testing.T, b *bubble) func() {
				b.warm(t)
				b.proxy.BlackHole()
				return nil
			}},
		{name: "in the queue",
			prepare: func(t *testing.T, b *bubble) func() {
				b.warm(t)
				return b.occupy(t)
			}},
		{name: "dialling", opts: []func(*redis.Options){hang},
			prepare: func(t *testing.T, b *bubble) func() {
				hanging.Store(true)
				return nil
			}},
		{name: "dialling again, the clock being known", opts: []func(*redis.Options){hang},
			prepare: func(t *testing.T, b *bubble) func() {
				b.warm(t)
				b.proxy.OnCommand(onScripts(redistest.Silence))
				c := start(b.Manager, newCount("other"))
				synctest.Wait()
				hanging.Store(true)
				return func() {
					c.cancel()
					<-c.done
				}
			}},
		{name: "in the handshake",
			prepare: func(t *testing.T, b *bubble) func() {
				b.proxy.OnCommand(onCommands(redistest.Silence, "HELLO"))
				return nil
			}},
		{name: "in the handshake, the clock being known",
			prepare: func(t *testing.T, b *bubble) func() {
				b.warm(t)
				b.proxy.OnCommand(onScripts(redistest.Silence))
				c := start(b.Manager, newCount("other"))
				synctest.Wait()
				b.proxy.OnCommand(onCommands(redistest.Silence, "HELLO"))
				return func() {
					c.cancel()
					<-c.done
				}
			}},
		{name: "asking for the time",
			prepare: func(t *testing.T, b *bubble) func() {
				b.proxy.OnCommand(onCommands(redistest.Silence, "TIME"))
				return nil
			}},
		{name: "backing off",
			prepare: func(t *testing.T, b *bubble) func() {
				b.warm(t)
				b.proxy.OnCommand(onScripts(loading))
				return nil
			}},
		{name: "backing off, nothing listening",
			prepare: func(t *testing.T, b *bubble) func() {
				b.proxy.Refuse(true)
				return nil
			}},
	} {
		// This time is shorter than every timeout, so that only the cancellation ends the call.
		const patience = 400 * time.Millisecond
		t.Run(tc.name, func(t *testing.T) {
			hanging.Store(false)
			inBubble(t, func(t *testing.T, b *bubble) {
				undo := tc.prepare(t, b)
				c := start(b.Manager, newCount("k"))
				time.Sleep(patience)
				if c.isDone() {
					t.Fatalf("returned before it was cancelled: %v", c.err)
				}
				cancelled := time.Now()
				c.cancel()
				mustMatch(t, c.wait(t, 50*time.Millisecond), context.Canceled)
				if took := c.ended.Sub(cancelled); took > 0 {
					t.Errorf("returned %v after it was cancelled", took)
				}
				notAfter, unheard := c.Outstanding()
				if unheard != tc.sent {
					t.Errorf("outstanding: %v, want %v", unheard, tc.sent)
				}
				if sent := cancelled.Add(-patience); unheard && notAfter != sent.Add(conn.Window).UnixMicro() {
					t.Errorf("outstanding until %d, want %v after the sending", notAfter, conn.Window)
				}
				if unheard && c.Attempts != 1 {
					t.Errorf("%d attempts, want 1", c.Attempts)
				}
				if undo != nil {
					undo()
				}
				hanging.Store(false)
				b.proxy.OnCommand(nil)
				b.proxy.Refuse(false)
				mustRun(t, b.Manager, newCount("afterwards"))
				if !unheard && b.executions(t, "k") != 0 {
					t.Error("a call that was not outstanding has run")
				}
			}, tc.opts...)
		})
	}
}

// A deadline ends a call in time as well, although go-redis sees the deadline too.
func TestDeadlineEndsACallInTime(t *testing.T) {
	for name, fault := range map[string]func(b *bubble){
		"silent":    func(b *bubble) { b.proxy.OnCommand(onScripts(redistest.Silence)) },
		"handshake": func(b *bubble) { b.proxy.Cut(); b.proxy.OnCommand(onCommands(redistest.Silence, "HELLO")) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.warm(t)
				fault(b)
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				started := time.Now()
				mustMatch(t, b.Run(ctx, newCount("k")), context.DeadlineExceeded)
				if took := time.Since(started); took != 300*time.Millisecond {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func TestContextThatHasEndedSendsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		sent := record(b.proxy)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c := newCount("k")
		mustMatch(t, b.Run(ctx, c), context.Canceled)
		if _, unheard := c.Outstanding(); unheard || sent.String() != "" || c.Attempts != 0 {
			t.Errorf("outstanding %v, %d attempts, sent %q", unheard, c.Attempts, sent)
		}
	})
}

// A cancelled call returns at once even if a real server, reached by TCP, is frozen.
func TestCancelWhileARealServerIsFrozen(t *testing.T) {
	server, pulse := redistest.Server(t), redistest.FeelPulse(t)
	m := newManager(t, server.Client(t))
	mustRun(t, m, newCount("k"))
	server.Freeze()
	defer server.Thaw()
	calls := make([]*started, 2*connections) // half of them in the queue
	for i := range calls {
		calls[i] = start(m, newCount(fmt.Sprint("k", i)))
	}
	time.Sleep(50 * time.Millisecond)
	for i, c := range calls {
		cancelled := time.Now()
		c.cancel()
		mustMatch(t, c.soon(t, pulse, cancelled), context.Canceled)
		t.Logf("caller %d returned after %v", i, c.ended.Sub(cancelled))
	}
}

// A cancelled call returns at once even if the listener accepts no connection, so that the
// handshake never ends.
func TestCancelInTheHandshakeOfARealListener(t *testing.T) {
	redistest.RealTime(t)
	pulse := redistest.FeelPulse(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	rdb := redis.NewClient(&redis.Options{Addr: listener.Addr().String()})
	defer rdb.Close()
	c := start(newManager(t, rdb), newCount("k"))
	time.Sleep(50 * time.Millisecond)
	cancelled := time.Now()
	c.cancel()
	mustMatch(t, c.soon(t, pulse, cancelled), context.Canceled)
	if _, unheard := c.Outstanding(); unheard {
		t.Error("outstanding, though no handshake has ended")
	}
}

// If one caller of a pipeline leaves, the other callers are not affected.
func TestCancelLeavesTheNeighboursAlone(t *testing.T) {
	const callers = 20
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		release := b.occupy(t)
		calls := make([]*started, callers)
		for i := range calls {
			calls[i] = start(b.Manager, newCount(fmt.Sprint("k", i)))
			synctest.Wait() // in this order: the last in the queue are not in the next pipelines
		}

		// Two callers leave while the pipeline is being gathered, and two when it is on its way.
		calls[3].cancel()
		calls[4].cancel()
		synctest.Wait()
		answered := make(chan struct{})
		b.proxy.OnCommand(onScripts(redistest.HoldReply(answered)))
		release()
		synctest.Wait()
		calls[7].cancel()
		calls[8].cancel()
		synctest.Wait()
		for _, i := range []int{3, 4, 7, 8} {
			if !calls[i].isDone() {
				t.Errorf("caller %d has not returned", i)
			}
		}
		close(answered)

		for i, c := range calls {
			err := c.wait(t, time.Second)
			_, unheard := c.Outstanding()
			executions := b.executions(t, fmt.Sprint("k", i))
			switch i {
			case 3, 4:
				mustMatch(t, err, context.Canceled)
				if unheard || executions != 0 {
					t.Errorf("caller %d left the queue: outstanding %v, %d executions", i, unheard, executions)
				}
			case 7, 8:
				mustMatch(t, err, context.Canceled)
				if !unheard || executions != 1 {
					t.Errorf("caller %d left after sending: outstanding %v, %d executions", i, unheard, executions)
				}
			default:
				if err != nil || c.Attempts != 1 || c.Int(2) != 1 || unheard {
					t.Errorf("caller %d: %v, %d attempts, reply %v, outstanding %v", i, err, c.Attempts, c.Reply, unheard)
				}
			}
		}
	})
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
		for _, in := range []struct {
			name string
			held time.Duration
			runs bool
		}{
			{"in time", tc.bound - ms, true},
			{"too late", tc.bound + ms, false},
		} {
			t.Run(tc.name+"/"+in.name, func(t *testing.T) {
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

					time.Sleep(in.held)
					close(released)
					synctest.Wait()
					if ran := b.executions(t, "k") == 1; ran != in.runs {
						t.Errorf("held for %v it has run: %v, want %v", in.held, ran, in.runs)
					}
				})
			})
		}
	}
}

// A call that prolongs a lease is given up when that lease is over.
func TestCallForALeaseThatIsOverIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		sent := record(b.proxy)
		over := newCount("k")
		over.Until = time.Now()
		mustMatch(t, b.Run(t.Context(), over), errs.Lost)
		if sent.String() != "" || over.Attempts != 0 {
			t.Errorf("sent %q in %d attempts", sent, over.Attempts)
		}

		b.proxy.OnCommand(onScripts(redistest.ReplyError("LOADING Redis is loading the dataset in memory")))
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

// A request that is held in front of a real server until its not-after has passed changes nothing.
// That server has its own clock.
func TestNotAfterBoundsALateRequestToARealServer(t *testing.T) {
	server := redistest.Server(t)
	proxy := redistest.Proxy(t, server.Addr())
	m := newManager(t, proxy.Client(t))
	mustRun(t, m, newCount("warm"))

	released, arrived := make(chan struct{}), make(chan struct{})
	proxy.OnCommand(func(c redistest.Command) redistest.Fault {
		if c.Name == "EVALSHA" && c.Args[2] == "k" {
			close(arrived)
			return redistest.HoldUntil(released)
		}
		return redistest.Pass
	})
	c := start(m, newCount("k"))
	<-arrived
	c.cancel()
	<-c.done
	notAfter, unheard := c.Outstanding()
	if !unheard {
		t.Fatal("not outstanding")
	}
	now := func() int64 { return server.Admin().Time(t.Context()).Val().UnixMicro() }
	if left := time.Duration(notAfter-now()) * time.Microsecond; left > conn.Window {
		t.Errorf("it may run for %v more, want at most %v", left, conn.Window)
	}
	redistest.Eventually(t, 10*time.Second, "the not-after passes", func() error {
		if now() <= notAfter {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	before := calls(t, server, "evalsha")
	close(released)
	redistest.Eventually(t, 10*time.Second, "the late request arrives", func() error {
		if calls(t, server, "evalsha") == before {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	if n := server.Admin().Exists(t.Context(), "k").Val(); n != 0 {
		t.Error("a late request has changed something")
	}
}

// calls returns how often the server has run that command.
func calls(t *testing.T, server *redistest.Proc, command string) string {
	t.Helper()
	info, err := server.Admin().InfoMap(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	return info["Commandstats"]["cmdstat_"+command]
}

// A dial that its caller did not wait for ends later. Its connection must not be taken for the
// connection that is in use by then.
func TestDialThatEndsLateIsNotTakenForAnother(t *testing.T) {
	release := make(chan struct{})
	var dials atomic.Int64
	stubborn := func(o *redis.Options) {
		dial := o.Dialer
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dials.Add(1) == 1 {
				<-release // it does not look at ctx
			}
			return dial(ctx, network, addr)
		}
	}
	redistest.Bubble(t, func(t *testing.T) {
		release = make(chan struct{})
		server := redistest.Mini(t)
		proxy := server.Proxy()
		m := newManager(t, proxy.Client(t, stubborn))
		b := &bubble{Manager: m, server: server, proxy: proxy}

		first := start(m, newCount("k"))
		synctest.Wait()
		first.cancel()
		mustMatch(t, first.wait(t, 50*time.Millisecond), context.Canceled)
		b.warm(t)
		close(release)
		synctest.Wait()

		b.proxy.OnCommand(onScripts(redistest.Silence))
		c := start(m, newCount("k"))
		synctest.Wait()
		cancelled := time.Now()
		c.cancel()
		mustMatch(t, c.wait(t, 50*time.Millisecond), context.Canceled)
		if took := c.ended.Sub(cancelled); took > 0 {
			t.Errorf("returned %v after it was cancelled", took)
		}
	})
}

// A connection that died while it was idle is dialled anew within the call. If that dial fails, the
// request was never sent.
func TestRedialOfADeadConnectionSendsNothing(t *testing.T) {
	server, pulse := redistest.Server(t), redistest.FeelPulse(t)
	var hanging atomic.Bool
	m := newManager(t, server.Client(t, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if hanging.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	}))
	mustRun(t, m, newCount("k"))
	hanging.Store(true)
	if n, err := server.Admin().ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Result(); n == 0 || err != nil {
		t.Fatalf("killed %d connections, %v", n, err)
	}
	time.Sleep(150 * time.Millisecond) // the FIN arrives, and the connection is due for a check
	c := start(m, newCount("k"))
	time.Sleep(50 * time.Millisecond)
	cancelled := time.Now()
	c.cancel()
	mustMatch(t, c.soon(t, pulse, cancelled), context.Canceled)
	if _, unheard := c.Outstanding(); unheard || c.Attempts != 0 {
		t.Errorf("outstanding %v, %d attempts", unheard, c.Attempts)
	}
}
