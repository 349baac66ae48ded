// A failed new connection says nothing of the other connections. A server is not dialled more often
// than is good for it. The user's functions may fail in any way.

package conn_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
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

// dialler is a Dialer that counts its dials, and fails while down is true.
type dialler struct {
	dials atomic.Int64
	down  atomic.Bool
}

func (d *dialler) option(o *redis.Options) {
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		d.dials.Add(1)
		if d.down.Load() {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "server misbehaving", Name: "redis"}}
		}
		return dial(ctx, network, addr)
	}
}

func TestAConnectionThatCannotBeMadeSaysNothingOfThoseThatWork(t *testing.T) {
	d := new(dialler)
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		node := nodeOf(t, b.Manager, "k")
		renewals := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := runBatch(ctx, t, b.Manager, node, []*conn.Call{newCount("renewed")})[0]; err != nil {
				t.Error(err)
			}
		}
		renewals()
		d.down.Store(true)
		before := d.dials.Load()

		held := make(chan struct{})
		b.proxy.OnCommand(func(c redistest.Command) redistest.Fault {
			if isScript(c) && slices.Contains(c.Args, "slow") {
				return redistest.HoldReply(held)
			}
			return redistest.Pass
		})
		slow := start(b.Manager, newCount("slow"))
		synctest.Wait()
		next := start(b.Manager, newCount("next"))
		time.Sleep(500 * time.Millisecond)
		if d.dials.Load() == before {
			t.Error("nobody has tried to make a connection for the second call")
		}
		renewals()
		close(held)
		for _, c := range []*started{slow, next} {
			if err := c.wait(t, time.Millisecond); err != nil {
				t.Error(err)
			}
		}
		renewals()
	}, d.option)
}

func TestRenewalsWaitForAConnectionThatIsBeingMade(t *testing.T) {
	d := new(dialler)
	inBubble(t, func(t *testing.T, b *bubble) {
		node := nodeOf(t, b.Manager, "k")
		renew := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			return runBatch(ctx, t, b.Manager, node, []*conn.Call{newCount("renewed")})[0]
		}
		d.down.Store(true)
		if err := renew(); err == nil {
			t.Fatal("renewed, though the server cannot be reached")
		}
		d.down.Store(false)
		if err := renew(); err != nil {
			t.Errorf("did not wait for the connection, but told of the one before: %v", err)
		}
	}, d.option, func(o *redis.Options) {
		dial := o.Dialer
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			select {
			case <-time.After(time.Second):
				return dial(ctx, network, addr)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})
}

func TestRenewalsGoOutBesideCallersWhereTheirConnectionCannotBeMade(t *testing.T) {
	d := new(dialler)
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		node := nodeOf(t, b.Manager, "k")
		d.down.Store(true)
		calls := make([]*conn.Call, 300)
		for i := range calls {
			calls[i] = newCount(fmt.Sprint("k", i))
		}
		for i, err := range runBatch(t.Context(), t, b.Manager, node, calls) {
			if err != nil || calls[i].Status() != 1 {
				t.Fatalf("call %d: %v, %v", i, err, calls[i].Reply)
			}
		}

		b.proxy.OnCommand(onScripts(redistest.Silence))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		lost := []*conn.Call{newCount("a"), newCount("b")}
		for i, err := range runBatch(ctx, t, b.Manager, node, lost) {
			mustMatch(t, err, context.DeadlineExceeded)
			if _, unheard := lost[i].Outstanding(); unheard != (i == 0) {
				t.Errorf("call %d: outstanding %v; the first is on its way, the other queues behind it", i, unheard)
			}
		}
	}, d.option)
}

// callers runs n calls on different keys until ctx ends.
func (b *bubble) callers(ctx context.Context, n int) (wait func()) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { _ = b.Run(ctx, newCount(fmt.Sprint("k", i))) })
	}
	return all.Wait
}

// The number of dials does not depend on the number of callers: about one each second, each after a
// random pause.
func TestDialsDoNotGrowWithTheCallers(t *testing.T) {
	for _, n := range []int{1, 10, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			d := new(dialler)
			inBubble(t, func(t *testing.T, b *bubble) {
				d.down.Store(true)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				wait := b.callers(ctx, n)
				time.Sleep(2 * time.Second)
				from := d.dials.Load()
				time.Sleep(16 * time.Second)
				if dials := d.dials.Load() - from; dials < 16 || dials > 16*2 {
					t.Errorf("%d dials in 16 s", dials)
				}
				wait()
			}, d.option)
		})
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

func TestAServerThatLoadsItsDataKeepsItsConnections(t *testing.T) {
	d := new(dialler)
	inBubble(t, func(t *testing.T, b *bubble) {
		b.proxy.OnCommand(onScripts(redistest.ReplyError("LOADING Redis is loading the dataset in memory")))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		b.callers(ctx, 100)()
		if dials := d.dials.Load(); dials > connections {
			t.Errorf("%d dials in 10 s", dials)
		}
	}, d.option)
}

func TestAServerThatIsNoMasterIsDialledAFewTimesASecond(t *testing.T) {
	d := new(dialler)
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		b.proxy.OnCommand(onScripts(redistest.ReplyError("READONLY You can't write against a read only replica.")))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		b.callers(ctx, 100)()
		if dials := d.dials.Load(); dials < 10 || dials > 10*8 {
			t.Errorf("%d dials in 10 s", dials)
		}
		b.proxy.OnCommand(nil)
		mustRun(t, b.Manager, newCount("k"))
	}, d.option)
}

// slowNetwork is a connection whose round trips take some time.
type slowNetwork struct {
	net.Conn
	roundTrip time.Duration
}

func (c slowNetwork) Write(p []byte) (int, error) {
	time.Sleep(c.roundTrip)
	return c.Conn.Write(p)
}

func TestConnectingIsFinishedThoughItsFirstCallerHasGone(t *testing.T) {
	const roundTrip = 30 * time.Millisecond
	var dials atomic.Int64
	inBubble(t, func(t *testing.T, b *bubble) {
		try := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 70*time.Millisecond)
			defer cancel()
			return b.Run(ctx, newCount("k"))
		}
		mustLoad(t, b.server.Client(), count)
		mustMatch(t, try(), context.DeadlineExceeded) // connecting takes 90 ms
		for range 3 {
			if err := try(); err != nil {
				t.Error(err)
			}
		}
		if n := dials.Load(); n != 1 {
			t.Errorf("%d dials", n)
		}
	}, func(o *redis.Options) {
		dial := o.Dialer
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			time.Sleep(roundTrip)
			c, err := dial(ctx, network, addr)
			return slowNetwork{c, roundTrip}, err
		}
	})
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
				node := nodeOf(t, b.Manager, "k")
				if err := runBatch(ctx, t, b.Manager, node, []*conn.Call{newCount("k")})[0]; err == nil {
					t.Error("a renewal has no error")
				}
			}, func(o *redis.Options) { set(o, func() error { panic("by the user") }) })
		})
	}
}

func TestAUsersFunctionThatBlocksHoldsNobodyUp(t *testing.T) {
	for name, set := range usersFunctions {
		t.Run(name, func(t *testing.T) {
			blocked := make(chan struct{})
			redistest.Bubble(t, func(t *testing.T) {
				blocked = make(chan struct{})
				server := redistest.Mini(t)
				m, err := conn.New(server.Client(func(o *redis.Options) {
					set(o, func() error { <-blocked; return nil })
				}), slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				c := start(m, newCount("k"))
				time.Sleep(300 * time.Millisecond)
				c.cancel()
				mustMatch(t, c.wait(t, time.Millisecond), context.Canceled)
				c = start(m, newCount("k"))
				synctest.Wait()
				begun := time.Now()
				m.Close()
				if took := time.Since(begun); took != 0 {
					t.Errorf("Close took %v", took)
				}
				mustMatch(t, c.wait(t, time.Millisecond), errs.Closed)
				close(blocked)
			})
		})
	}
}

func TestAnIdleConnectionIsClosedWhenTheUserSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		node := nodeOf(t, b.Manager, "k")
		for range 10 {
			runBatch(t.Context(), t, b.Manager, node, []*conn.Call{newCount("k")})
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
		mustRun(t, b.Manager, newCount("k"))
		callers, node := b.proxy.Conns(), nodeOf(t, b.Manager, "k")
		held := make(chan struct{})
		b.proxy.OnCommand(onScripts(redistest.HoldReply(held)))
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				call := newCount(fmt.Sprint("k", i))
				if err := runBatch(t.Context(), t, b.Manager, node, []*conn.Call{call})[0]; err != nil {
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

func TestAConnectionIsReplacedWhenItIsAsOldAsTheUserAllows(t *testing.T) {
	d := new(dialler)
	inBubble(t, func(t *testing.T, b *bubble) {
		for range 60 {
			mustRun(t, b.Manager, newCount("k"))
			time.Sleep(5 * time.Second)
		}
		if n := d.dials.Load(); n != 5 {
			t.Errorf("%d dials in 5 minutes, want one a minute", n)
		}
	}, d.option, func(o *redis.Options) { o.ConnMaxLifetime = time.Minute })
}

// open is a circuit breaker that lets nothing through.
type open struct{}

func (open) Allow() error       { return errors.New("the circuit breaker is open") }
func (open) ReportResult(error) {}

func TestTheProgramsLimiterIsNotAsked(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) { b.warm(t) }, func(o *redis.Options) { o.Limiter = open{} })
}

func TestALogLineIsNotWrittenForEachCallThatWaits(t *testing.T) {
	warnings := new(warnings)
	inBubble(t, func(t *testing.T, b *bubble) {
		m, err := conn.New(b.proxy.Client(t), slog.New(warnings))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		b.proxy.Refuse(true)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		(&bubble{Manager: m}).callers(ctx, 1000)()
		if n := warnings.n.Load(); n < 1 || n > 4 {
			t.Errorf("%d warnings in 3 minutes", n)
		}
	})
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
			b.callers(ctx, 10)()
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
