// A failed new connection says nothing of the other connections. A server is not dialled more often
// than is good for it. The user's functions may fail in any way.

package conn_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// A connection that cannot be made says nothing of those that work: callers wait for the one that is there,
// and renewals go on on theirs.
func TestAConnectionThatCannotBeMadeSaysNothingOfThoseThatWork(t *testing.T) {
	d := new(dialler)
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		renewal := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := renew(ctx, t, b.Manager); err != nil {
				t.Error(err)
			}
		}
		renewal()
		d.down.Store(true)
		before := d.dials.Load()
		held := make(chan struct{})
		b.proxy.OnCommand(func(c redistest.Command) redistest.Fault {
			if isScript(c) && slices.Contains(c.Args, "k000") {
				return redistest.HoldReply(held)
			}
			return redistest.Pass
		})
		calls := queued(b.Manager, 2, numbered)
		time.Sleep(500 * time.Millisecond)
		if d.dials.Load() == before {
			t.Error("nobody has tried to make a connection for the second call")
		}
		renewal()
		close(held)
		for _, c := range calls {
			if err := c.wait(t, time.Millisecond); err != nil {
				t.Error(err)
			}
		}
		renewal()
	}, d.option)
}

func TestRenewalsWaitForAConnectionThatIsBeingMade(t *testing.T) {
	d := new(dialler)
	var writes, largest atomic.Int64
	inBubble(t, func(t *testing.T, b *bubble) {
		try := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			return renew(ctx, t, b.Manager)
		}
		d.down.Store(true)
		if err := try(); err == nil {
			t.Fatal("renewed, though the server cannot be reached")
		}
		d.down.Store(false)
		if err := try(); err != nil {
			t.Errorf("did not wait for the connection, but told of the one before: %v", err)
		}
	}, d.option, slowly(300*time.Millisecond, &writes, &largest))
}

func TestRenewalsGoOutBesideCallersWhereTheirConnectionCannotBeMade(t *testing.T) {
	d := new(dialler)
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		node := nodeOf(t, b.Manager, "k")
		d.down.Store(true)
		calls := make([]*conn.Call, 300)
		for i := range calls {
			calls[i] = numbered(i)
		}
		for i, err := range runBatch(t.Context(), t, b.Manager, node, calls) {
			if err != nil || calls[i].Status() != 1 {
				t.Fatalf("call %d: %v, %v", i, err, calls[i].Reply)
			}
		}

		b.proxy.OnCommand(onScripts(redistest.Silence))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		lost := counts("a", "b")
		for i, err := range runBatch(ctx, t, b.Manager, node, lost) {
			mustMatch(t, err, context.DeadlineExceeded)
			if _, unheard := lost[i].Outstanding(); unheard != (i == 0) {
				t.Errorf("call %d: outstanding %v; the first is on its way, the other queues behind it", i, unheard)
			}
		}
	}, d.option)
}

// A dial of which nothing is heard is not the only one: 250 ms later another is made beside it.
func TestASecondDialIsMadeBesideOneThatHangs(t *testing.T) {
	for name, try := range map[string]func(ctx context.Context, t *testing.T, m *conn.Manager) error{
		"for a call":    func(ctx context.Context, _ *testing.T, m *conn.Manager) error { return m.Run(ctx, newCount("k")) },
		"for a renewal": func(ctx context.Context, t *testing.T, m *conn.Manager) error { return renew(ctx, t, m) },
	} {
		t.Run(name, func(t *testing.T) {
			d := new(dialler)
			inBubble(t, func(t *testing.T, b *bubble) {
				d.hangs.Store(true)
				for range 2 {
					ctx, cancel := context.WithTimeout(t.Context(), 125*time.Millisecond)
					mustMatch(t, try(ctx, t, b.Manager), context.DeadlineExceeded)
					cancel()
					d.hangs.Store(false)
				}
				if n := d.dials.Load(); n != 1 {
					t.Errorf("%d dials before the first is late", n)
				}
				begun := time.Now()
				if err := try(t.Context(), t, b.Manager); err != nil || time.Since(begun) != 0 {
					t.Errorf("%v after %v", err, time.Since(begun))
				}
			}, d.option)
		})
	}
}

// callers starts n calls on different keys.
func (b *bubble) callers(n int) []*started {
	calls := make([]*started, n)
	for i := range calls {
		calls[i] = start(b.Manager, numbered(i))
	}
	return calls
}

// afterAnOutage has that many calls queue while the server cannot be reached, for so long that the
// pauses between dials are as long as they get. Then it lets the server be reached.
func (b *bubble) afterAnOutage(t *testing.T, d *dialler, callers int) []*started {
	t.Helper()
	b.warm(t)
	d.down.Store(true)
	b.proxy.Cut()
	calls := b.callers(callers)
	time.Sleep(20 * time.Second)
	d.down.Store(false)
	return calls
}

// A server that fails is dialled about once a second, after a random pause, however many callers wait for
// it, however it fails, and however it ends the connections on which it says that it does not serve.
func TestDialsDoNotGrowWithTheCallers(t *testing.T) {
	down := redistest.ReplyError("CLUSTERDOWN The cluster is down")
	noMaster := redistest.ReplyError("READONLY You can't write against a read only replica.")
	rule := func(fault, other redistest.Fault) func(*bubble, *dialler) {
		return func(b *bubble, _ *dialler) { b.proxy.OnCommand(firstOfEach(fault, other)) }
	}
	for _, tc := range []struct {
		name        string
		callers     []int
		outage      bool // comes first
		fail        func(b *bubble, d *dialler)
		least, most int64 // dials in 10 s
	}{
		{"out of reach", []int{1, 10, 1000}, false, func(b *bubble, d *dialler) { d.down.Store(true); b.proxy.Cut() }, 10, 20},
		{"loads its data", []int{100}, false, rule(loading, loading), 0, connections},
		{"is no master", []int{100}, false, rule(noMaster, noMaster), 10, 80},
		{"loads its data and closes", []int{1, 100}, true, rule(loading, redistest.DropBefore), 0, 20},
		{"loads its data and is silent", []int{1, 100}, true, rule(loading, redistest.Silence), 0, 20},
		{"is down and closes", []int{1, 100}, true, rule(down, redistest.DropBefore), 0, 20},
		{"is down and is silent", []int{1, 100}, true, rule(down, redistest.Silence), 0, 20},
	} {
		for _, n := range tc.callers {
			t.Run(fmt.Sprint(tc.name, " ", n), func(t *testing.T) {
				d := new(dialler)
				inBubble(t, func(t *testing.T, b *bubble) {
					var calls []*started
					if tc.outage {
						calls = b.afterAnOutage(t, d, n)
						tc.fail(b, d)
					} else {
						b.warm(t)
						b.occupy(t)() // so that all connections are open
						tc.fail(b, d)
						calls = b.callers(n)
					}
					time.Sleep(2 * time.Second)
					from := d.dials.Load()
					time.Sleep(10 * time.Second)
					if dials := d.dials.Load() - from; dials < tc.least || dials > tc.most {
						t.Errorf("%d dials in 10 s, want %d to %d", dials, tc.least, tc.most)
					}
					d.down.Store(false)
					b.proxy.OnCommand(nil)
					for _, c := range calls {
						if err := c.wait(t, 5*time.Second); err != nil {
							t.Fatal(err)
						}
					}
				}, d.option)
			})
		}
	}
}

// firstOfEach returns a rule that gives the first script of each connection one fault, and the others
// another.
func firstOfEach(first, others redistest.Fault) func(redistest.Command) redistest.Fault {
	var met sync.Map
	return func(c redistest.Command) redistest.Fault {
		if !isScript(c) {
			return redistest.Pass
		}
		if _, again := met.LoadOrStore(c.Conn, true); again {
			return others
		}
		return first
	}
}

func TestAServerThatIsBackIsFoundAfterOneMorePause(t *testing.T) {
	d := new(dialler)
	inBubble(t, func(t *testing.T, b *bubble) {
		for range 20 {
			d.down.Store(true)
			b.proxy.Cut()
			c := start(b.Manager, newCount("k"))
			time.Sleep(10 * time.Second)
			d.down.Store(false)
			if err := c.wait(t, 1201*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
	}, d.option)
}

// Subscriptions dial through the gate too: they add no dials, and do not keep a call from the server
// once it is back.
func TestSubscriptionsShareTheDialsOfTheCalls(t *testing.T) {
	d := new(dialler)
	inBubble(t, func(t *testing.T, b *bubble) {
		for range 20 {
			d.down.Store(true)
			b.proxy.Cut()
			ctx, cancel := context.WithCancel(t.Context())
			subscribing := make(chan struct{})
			go func() {
				defer close(subscribing)
				for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
					rdb, err := b.Dial("")
					if err != nil {
						t.Error(err)
						return
					}
					_ = rdb.Ping(ctx).Err()
					_ = rdb.Close()
				}
			}()
			c := start(b.Manager, newCount("k"))
			time.Sleep(2 * time.Second)
			from := d.dials.Load()
			time.Sleep(10 * time.Second)
			if dials := d.dials.Load() - from; dials > 10*2 {
				t.Errorf("%d dials in 10 s", dials)
			}
			d.down.Store(false)
			if err := c.wait(t, 2400*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			cancel()
			<-subscribing
		}
	}, d.option)
}

func TestConnectingIsFinishedThoughItsFirstCallerHasGone(t *testing.T) {
	var writes, largest atomic.Int64
	d := new(dialler)
	inBubble(t, func(t *testing.T, b *bubble) {
		try := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 70*time.Millisecond)
			defer cancel()
			return b.Run(ctx, newCount("k"))
		}
		b.load(t, count)
		mustMatch(t, try(), context.DeadlineExceeded) // connecting takes 90 ms
		for range 3 {
			if err := try(); err != nil {
				t.Error(err)
			}
		}
		if n := d.dials.Load(); n != 1 {
			t.Errorf("%d dials", n)
		}
	}, d.option, slowly(30*time.Millisecond, &writes, &largest))
}

// A dial that its caller has left behind may return a nil connection. go-redis's own dialer does
// this for TLS when the server is silent.
func TestADialThatIsLeftBehindMayReturnANilConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		mustMatch(t, b.Run(ctx, newCount("k")), context.DeadlineExceeded)
		time.Sleep(time.Minute)
	}, func(o *redis.Options) {
		o.Dialer = func(context.Context, string, string) (net.Conn, error) {
			time.Sleep(5 * time.Second)
			return (*tls.Conn)(nil), errors.New("i/o timeout")
		}
	})
}

// usersFunctions are the options that are functions of the user and run while a connection is made.
var usersFunctions = map[string]func(o *redis.Options, do func() error){
	"Dialer": func(o *redis.Options, do func() error) {
		o.Dialer = func(context.Context, string, string) (net.Conn, error) { return nil, do() }
	},
	"OnConnect": func(o *redis.Options, do func() error) {
		o.OnConnect = func(context.Context, *redis.Conn) error { return do() }
	},
	"CredentialsProvider": func(o *redis.Options, do func() error) {
		o.CredentialsProvider = func() (string, string) { _ = do(); return "", "" }
	},
	"CredentialsProviderContext": func(o *redis.Options, do func() error) {
		o.CredentialsProviderContext = func(context.Context) (string, string, error) { return "", "", do() }
	},
}

func TestAUsersFunctionThatPanicsIsAnError(t *testing.T) {
	for name, set := range usersFunctions {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				err := b.Run(ctx, newCount("k"))
				mustMatch(t, err, context.DeadlineExceeded)
				if err == nil || !strings.Contains(err.Error(), "panicked: by the user") {
					t.Errorf("%v does not say why", err)
				}
				if err := renew(ctx, t, b.Manager); err == nil {
					t.Error("a renewal has no error")
				}
			}, func(o *redis.Options) { set(o, func() error { panic("by the user") }) })
		})
	}
}

func TestAUsersFunctionThatBlocksHoldsNobodyUp(t *testing.T) {
	for name, set := range usersFunctions {
		t.Run(name, func(t *testing.T) {
			var blocked chan struct{}
			inBubble(t, func(t *testing.T, b *bubble) {
				blocked = make(chan struct{})
				defer close(blocked)
				c := start(b.Manager, newCount("k"))
				time.Sleep(300 * time.Millisecond)
				c.cancel()
				mustMatch(t, c.wait(t, time.Millisecond), context.Canceled)
				c = start(b.Manager, newCount("k"))
				synctest.Wait()
				begun := time.Now()
				b.Close()
				if took := time.Since(begun); took != 0 {
					t.Errorf("Close took %v", took)
				}
				mustMatch(t, c.wait(t, time.Millisecond), errs.Closed)
			}, func(o *redis.Options) { set(o, func() error { <-blocked; return nil }) })
		})
	}
}

func TestAnIdleConnectionIsClosedWhenTheUserSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		for range 10 {
			if err := renew(t.Context(), t, b.Manager); err != nil {
				t.Error(err)
			}
			time.Sleep(20 * time.Second)
		}
		if n := b.proxy.Conns(); n != 1 {
			t.Errorf("%d connections, want that for renewals alone", n)
		}
		time.Sleep(time.Minute + 10*time.Second)
		if n := b.proxy.Conns(); n != 0 {
			t.Errorf("%d connections", n)
		}
		mustRun(t, b.Manager, newCount("k"))
	}, func(o *redis.Options) { o.ConnMaxIdleTime = time.Minute })
}

// Batches that are under way at the same time do not wait for each other. The connections that they
// needed for that are closed soon after.
func TestBatchesAtTheSameTimeHaveAConnectionEach(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		callers, held := b.proxy.Conns(), make(chan struct{})
		b.proxy.OnCommand(onScripts(redistest.HoldReply(held)))
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if err := renew(t.Context(), t, b.Manager); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := b.proxy.Conns() - callers; n != 3 {
			t.Errorf("%d connections for three batches", n)
		}
		close(held)
		all.Wait()
		time.Sleep(25 * time.Second)
		if n := b.proxy.Conns() - callers; n != 1 {
			t.Errorf("%d connections are kept", n)
		}
	})
}

// A connection is replaced when it is as old as the user allows. A lifetime without its unit, 30 for 30 s,
// must not have the server dialled without end.
func TestAConnectionHasTheLifetimeThatTheUserSets(t *testing.T) {
	for lifetime, want := range map[time.Duration]int64{time.Minute: 5, 30: 30} {
		d := new(dialler)
		inBubble(t, func(t *testing.T, b *bubble) {
			for range 60 {
				mustRun(t, b.Manager, newCount("k"))
				time.Sleep(5 * time.Second)
			}
			if n := d.dials.Load(); n != want {
				t.Errorf("a lifetime of %v: %d dials in 5 minutes, want %d", lifetime, n, want)
			}
		}, d.option, func(o *redis.Options) { o.ConnMaxLifetime = lifetime })
	}
}

// open is a circuit breaker that lets nothing through.
type open struct{}

func (open) Allow() error       { return errors.New("the circuit breaker is open") }
func (open) ReportResult(error) {}

func TestTheProgramsLimiterIsNotAsked(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) { b.warm(t) }, func(o *redis.Options) { o.Limiter = open{} })
}

// said is a logger for go-redis that keeps its lines.
type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) Printf(_ context.Context, format string, v ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, v...))
}

func TestGoRedisHasNothingToPrintAboutOurDials(t *testing.T) {
	s := new(said)
	redis.SetLogger(s)
	d := new(dialler)
	for name, end := range map[string]func(b *bubble){
		"an outage": func(b *bubble) {
			d.down.Store(true)
			b.proxy.Cut()
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_ = b.Run(ctx, newCount("k"))
			ctx, cancel = context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if client, err := b.Dial("127.0.0.1:6379"); err != nil || client.Ping(ctx).Err() == nil {
				panic("reached what is down")
			} else {
				client.Close()
			}
		},
		"a Close while a connection is made": func(b *bubble) {
			b.proxy.OnCommand(onCommands(redistest.Silence, "HELLO"))
			c := start(b.Manager, newCount("k"))
			synctest.Wait()
			b.Close()
			<-c.done
		},
		"a connection that was closed meanwhile": func(b *bubble) {
			b.proxy.Cut()
			time.Sleep(time.Second)
			_ = b.Run(context.Background(), newCount("k"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d.down.Store(false)
			inBubble(t, func(t *testing.T, b *bubble) {
				if !strings.Contains(name, "Close") {
					b.warm(t)
				}
				end(b)
			}, d.option)
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, line := range s.lines {
				t.Errorf("go-redis says: %s", line)
			}
			s.lines = nil
		})
	}
}
