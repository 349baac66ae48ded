// A failed new connection says nothing of the other connections. A server is not dialled more often
// than is good for it. The user's functions may fail in any way.

package conn_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
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
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		redistest.Check(t, renew(t, time.Second, b.Manager))
		synctest.Wait() // the renewals have a connection of their own
		b.down.Store(true)
		before := b.dials.Load()
		held := make(chan struct{})
		b.proxy.OnCommand(onKeys(map[string]redistest.Fault{"k000": redistest.HoldReply(held)}))
		calls := queued(b.Manager, 2, numbered)
		time.Sleep(500 * time.Millisecond)
		if b.dials.Load() == before {
			t.Error("nobody has tried to make a connection for the second call")
		}
		redistest.Check(t, renew(t, time.Second, b.Manager))
		close(held)
		served(t, time.Millisecond, calls...)
		redistest.Check(t, renew(t, time.Second, b.Manager))
	})
}

func TestRenewalsWaitForAConnectionThatIsBeingMade(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.latency.Store(int64(300 * time.Millisecond))
		b.down.Store(true)
		if err := renew(t, 5*time.Second, b.Manager); err == nil {
			t.Fatal("renewed, though the server cannot be reached")
		}
		b.down.Store(false)
		if err := renew(t, 5*time.Second, b.Manager); err != nil {
			t.Errorf("did not wait for the connection, but told of the one before: %v", err)
		}
		time.Sleep(time.Second) // until the dial beside this one has ended
	})
}

// The first connection after an outage serves whoever waits, even if it was made for renewals that have given up meanwhile.
func TestTheFirstConnectionAfterAnOutageServesWhoeverWaits(t *testing.T) {
	for range 5 { // it is chance which of those that wait dials first
		inBubble(t, func(t *testing.T, b *bubble) {
			b.warm(t)
			b.down.Store(true)
			b.proxy.Cut()
			for range 4 {
				_ = renew(t, 100*time.Millisecond, b.Manager) // the dial for it pauses longer
			}
			call := start(b.Manager, newCount("k"))
			synctest.Wait()
			before := b.dials.Load()
			for b.down.Store(false); b.dials.Load() == before; {
				time.Sleep(time.Millisecond)
			}
			served(t, time.Millisecond, call)
		})
	}
}

func TestRenewalsGoOutBesideCallersWhereTheirConnectionCannotBeMade(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		node := nodeOf(t, b.Manager, "k")
		b.down.Store(true)
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
		ctx := redistest.Within(t, 100*time.Millisecond)
		lost := counts("a", "b")
		for i, err := range runBatch(ctx, t, b.Manager, node, lost) {
			mustMatch(t, err, context.DeadlineExceeded)
			if _, unheard := lost[i].Outstanding(); unheard != (i == 0) {
				t.Errorf("call %d: outstanding %v; the first is on its way, the other queues behind it", i, unheard)
			}
		}
	})
}

// A dial of which nothing is heard is not the only one: 250 ms later another is made beside it.
func TestASecondDialIsMadeBesideOneThatHangs(t *testing.T) {
	for name, try := range map[string]func(t *testing.T, d time.Duration, m *conn.Manager) error{
		"for a call":    func(_ *testing.T, d time.Duration, m *conn.Manager) error { return runFor(d, m, newCount("k")) },
		"for a renewal": func(t *testing.T, d time.Duration, m *conn.Manager) error { return renew(t, d, m) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.hangs.Store(true)
				for range 2 {
					mustMatch(t, try(t, 125*time.Millisecond, b.Manager), context.DeadlineExceeded)
					b.hangs.Store(false)
				}
				redistest.Equal(t, b.dials.Load(), 1, "%d dials before the first is late")
				takes(t, 0, func() {
					redistest.Check(t, try(t, time.Second, b.Manager))
				})
			})
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
func (b *bubble) afterAnOutage(t *testing.T, callers int) []*started {
	t.Helper()
	b.warm(t)
	b.down.Store(true)
	b.proxy.Cut()
	calls := b.callers(callers)
	time.Sleep(20 * time.Second)
	b.down.Store(false)
	return calls
}

// A server that fails is dialled about once a second, after a random pause, however many callers wait for
// it, however it fails, and however it ends the connections on which it says that it does not serve.
func TestDialsDoNotGrowWithTheCallers(t *testing.T) {
	down := redistest.ReplyError("CLUSTERDOWN The cluster is down")
	noMaster := redistest.ReplyError("READONLY You can't write against a read only replica.")
	rule := func(fault, other redistest.Fault) func(*bubble) {
		return func(b *bubble) { b.proxy.OnCommand(firstOfEach(fault, other)) }
	}
	for _, tc := range []struct {
		name        string
		callers     []int
		outage      bool // comes first
		fail        func(b *bubble)
		least, most int64 // dials in 10 s
		// back is within which calls are served once the server serves. A request that was swallowed is
		// given up after the patience, which has grown meanwhile.
		back time.Duration
	}{
		{"out of reach", []int{1, 10, 200}, false, func(b *bubble) { b.down.Store(true); b.proxy.Cut() }, 8, 20, 1201 * time.Millisecond},
		{"closes at the first request", []int{1, 100}, false, rule(redistest.DropBefore, redistest.DropBefore), 2, 24, 5 * time.Second},
		{"loads its data", []int{100}, false, rule(loading, loading), 0, connections, 5 * time.Second},
		{"is no master", []int{100}, false, rule(noMaster, noMaster), 5, 80, 5 * time.Second},
		{"loads its data and closes", []int{1, 100}, true, rule(loading, redistest.DropBefore), 0, 20, 5 * time.Second},
		{"loads its data and is silent", []int{1, 100}, true, rule(loading, redistest.Silence), 0, 20, 12 * time.Second},
		{"is down and closes", []int{1, 100}, true, rule(down, redistest.DropBefore), 0, 20, 5 * time.Second},
		{"is down and is silent", []int{1, 100}, true, rule(down, redistest.Silence), 0, 20, 12 * time.Second},
	} {
		for _, n := range tc.callers {
			t.Run(fmt.Sprint(tc.name, " ", n), func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *bubble) {
					var calls []*started
					if tc.outage {
						calls = b.afterAnOutage(t, n)
						tc.fail(b)
					} else {
						b.warm(t)
						b.occupy(t)() // so that all connections are open
						tc.fail(b)
						calls = b.callers(n)
					}
					time.Sleep(2 * time.Second)
					from := b.dials.Load()
					time.Sleep(10 * time.Second)
					if dials := b.dials.Load() - from; dials < tc.least || dials > tc.most {
						t.Errorf("%d dials in 10 s, want %d to %d", dials, tc.least, tc.most)
					}
					b.down.Store(false)
					b.proxy.OnCommand(nil)
					served(t, tc.back, calls...)
				})
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

// One request goes first: if a pipeline went, any loss in it would keep the server for one that fails.
func TestOneRequestGoesFirstToAServerThatHasFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		calls := b.afterAnOutage(t, 100)
		var came atomic.Int64
		held := make(chan struct{})
		b.proxy.OnCommand(func(c redistest.Command) redistest.Fault {
			if isScript(c) && came.Add(1) == 1 {
				return redistest.HoldReply(held)
			}
			return redistest.Pass
		})
		for came.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		redistest.Equal(t, came.Load(), 1, "%d requests went out before the first was answered")
		close(held)
		served(t, 100*time.Millisecond, calls...)
	})
}

// Subscriptions dial through the gate too: they add no dials, and do not keep a call from the server
// once it is back.
func TestSubscriptionsShareTheDialsOfTheCalls(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		for range 20 {
			b.down.Store(true)
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
			from := b.dials.Load()
			time.Sleep(10 * time.Second)
			if dials := b.dials.Load() - from; dials > 10*2 {
				t.Errorf("%d dials in 10 s", dials)
			}
			b.down.Store(false)
			served(t, 2400*time.Millisecond, c)
			cancel()
			<-subscribing
		}
	})
}

func TestConnectingIsFinishedThoughItsFirstCallerHasGone(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.latency.Store(int64(30 * time.Millisecond))
		try := func() error { return runFor(70*time.Millisecond, b.Manager, newCount("k")) }
		b.load(t, count)
		mustMatch(t, try(), context.DeadlineExceeded) // connecting takes 90 ms
		for range 3 {
			redistest.Check(t, try())
		}
		redistest.Equal(t, b.dials.Load(), 1, "%d dials")
	})
}

// A dial that its caller has left behind may return a nil connection. go-redis's own dialer does
// this for TLS when the server is silent.
func TestADialThatIsLeftBehindMayReturnANilConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		mustMatch(t, runFor(300*time.Millisecond, b.Manager, newCount("k")), context.DeadlineExceeded)
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
	"StreamingCredentialsProvider": func(o *redis.Options, do func() error) {
		o.StreamingCredentialsProvider = &stream{do: do}
	},
}

// A function of the user's that panics is an error. One that blocks holds nobody up.
func TestAUsersFunctionMayPanicOrBlock(t *testing.T) {
	for name, set := range usersFunctions {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				err := runFor(3*time.Second, b.Manager, newCount("k"))
				mustMatch(t, err, context.DeadlineExceeded)
				if err == nil || !strings.Contains(err.Error(), "panicked: by the user") {
					t.Errorf("%v does not say why", err)
				}
				if err := renew(t, time.Second, b.Manager); err == nil {
					t.Error("a renewal has no error")
				}
			}, func(o *redis.Options) { set(o, func() error { panic("by the user") }) })

			var blocked chan struct{}
			inBubble(t, func(t *testing.T, b *bubble) {
				blocked = make(chan struct{})
				defer close(blocked)
				takes(t, 300*time.Millisecond, func() {
					mustMatch(t, runFor(300*time.Millisecond, b.Manager, newCount("k")), context.DeadlineExceeded)
				})
				c := start(b.Manager, newCount("k"))
				synctest.Wait()
				takes(t, 0, b.Close)
				mustMatch(t, c.wait(t, time.Millisecond), errs.Closed)
			}, func(o *redis.Options) { set(o, func() error { <-blocked; return nil }) })
		})
	}
}

func TestAnIdleConnectionIsClosedWhenTheUserSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		for range 10 {
			redistest.Check(t, renew(t, time.Hour, b.Manager))
			time.Sleep(20 * time.Second)
		}
		redistest.Equal(t, b.proxy.Conns(), 1, "%d connections, want that for renewals alone")
		time.Sleep(time.Minute + 10*time.Second)
		redistest.Equal(t, b.proxy.Conns(), 0, "%d connections")
		mustRun(t, b.Manager, newCount("k"))
	}, func(o *redis.Options) { o.ConnMaxIdleTime = time.Minute })
}

// Batches that are under way at the same time do not wait for each other. The connections that they
// needed for that are closed soon after.
func TestBatchesAtTheSameTimeHaveAConnectionEach(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		callers, held := b.proxy.Conns(), make(chan struct{})
		redistest.Must(t, renew(t, time.Hour, b.Manager)) // the first may go out on a caller's
		synctest.Wait()
		b.proxy.OnCommand(onScripts(redistest.HoldReply(held)))
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				redistest.Check(t, renew(t, time.Hour, b.Manager))
			})
		}
		synctest.Wait()
		redistest.Equal(t, b.proxy.Conns()-callers, 3, "%d connections for three batches")
		close(held)
		all.Wait()
		time.Sleep(25 * time.Second)
		redistest.Equal(t, b.proxy.Conns()-callers, 1, "%d connections are kept")
	})
}

// A connection is replaced when it is as old as the user allows. A lifetime without its unit, 30 for 30 s,
// must not have the server dialled without end.
func TestAConnectionHasTheLifetimeThatTheUserSets(t *testing.T) {
	for lifetime, want := range map[time.Duration]int64{time.Minute: 5, 30: 30} {
		inBubble(t, func(t *testing.T, b *bubble) {
			for range 60 {
				mustRun(t, b.Manager, newCount("k"))
				time.Sleep(5 * time.Second)
			}
			redistest.Equal(t, b.dials.Load(), want, "%d dials in 5 minutes, want %d (a lifetime of %v)", want, lifetime)
		}, func(o *redis.Options) { o.ConnMaxLifetime = lifetime })
	}
}

func TestGoRedisHasNothingToPrintAboutOurDials(t *testing.T) {
	printed := new(lines)
	redis.SetLogger(printed)
	for name, end := range map[string]func(b *bubble){
		"an outage": func(b *bubble) {
			b.down.Store(true)
			b.proxy.Cut()
			_ = runFor(10*time.Second, b.Manager, newCount("k"))
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
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
			inBubble(t, func(t *testing.T, b *bubble) {
				if !strings.Contains(name, "Close") {
					b.warm(t)
				}
				end(b)
			})
			for _, line := range printed.said("") {
				t.Errorf("go-redis says: %s", line)
			}
		})
	}
}
