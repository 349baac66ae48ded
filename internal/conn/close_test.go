// Interrupt and Close make every caller return at once with errs.Closed. Clean-ups go on between
// the two, and nothing is left after Close.

package conn_test

import (
	"context"
	"fmt"
	"log/slog"
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

// Each case stops callers at one point on their way. Ending the Manager must make all of them
// return at once.
func TestClosingBringsEveryCallerBack(t *testing.T) {
	const callers = 3 * connections
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
	for _, where := range []struct {
		name    string
		prepare func(t *testing.T, b *bubble)
	}{
		{"silent server", func(t *testing.T, b *bubble) {
			b.warm(t)
			b.proxy.OnCommand(onScripts(redistest.Silence))
		}},
		{"dead connections", func(t *testing.T, b *bubble) {
			b.warm(t)
			release := b.occupy(t) // so that all connections are open
			release()
			b.proxy.BlackHole()
		}},
		{"handshake", func(t *testing.T, b *bubble) {
			b.proxy.OnCommand(onCommands(redistest.Silence, "HELLO"))
		}},
		{"dialling", func(t *testing.T, b *bubble) { hanging.Store(true) }},
		{"backing off", func(t *testing.T, b *bubble) {
			b.warm(t)
			b.proxy.OnCommand(onScripts(redistest.ReplyError("LOADING Redis is loading the dataset in memory")))
		}},
		{"nothing listening", func(t *testing.T, b *bubble) { b.proxy.Refuse(true) }},
	} {
		for name, end := range map[string]func(*conn.Manager){
			"Interrupt": (*conn.Manager).Interrupt,
			"Close":     (*conn.Manager).Close,
		} {
			t.Run(where.name+"/"+name, func(t *testing.T) {
				hanging.Store(false)
				inBubble(t, func(t *testing.T, b *bubble) {
					where.prepare(t, b)
					calls := make([]*started, callers)
					for i := range calls {
						calls[i] = start(b.Manager, newCount(fmt.Sprint("k", i)))
					}
					// This time is shorter than every timeout, so that nothing else ends the calls.
					time.Sleep(400 * time.Millisecond)
					begun := time.Now()
					end(b.Manager)
					if took := time.Since(begun); took > 0 {
						t.Errorf("%s took %v", name, took)
					}
					for i, c := range calls {
						mustMatch(t, c.wait(t, 50*time.Millisecond), errs.Closed)
						if took := c.ended.Sub(begun); took > 0 {
							t.Errorf("caller %d returned after %v", i, took)
						}
					}
					mustMatch(t, b.Run(t.Context(), newCount("k")), errs.Closed)
				}, hang)
			})
		}
	}
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
		if n := b.proxy.Conns(); n != 0 {
			t.Errorf("%d connections after Close", n)
		}
	})
}

// Several goroutines call Close while callers come and go.
func TestCloseUnderLoad(t *testing.T) {
	server := redistest.Server(t)
	for range redistest.Count(t, 200) {
		m, err := conn.New(server.Client(t), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		var callers, closers sync.WaitGroup
		var ran atomic.Int64
		for i := range 16 {
			callers.Go(func() {
				for {
					err := m.Run(context.Background(), newCount(fmt.Sprint("k", i)))
					if err != nil {
						mustMatch(t, err, errs.Closed)
						return
					}
					ran.Add(1)
				}
			})
		}
		for ran.Load() < 50 {
			time.Sleep(time.Millisecond)
		}
		closers.Go(m.Interrupt)
		closers.Go(m.Close)
		closers.Go(m.Close)
		closers.Wait()
		callers.Wait()
	}
	redistest.Eventually(t, 10*time.Second, "no connection of a Manager is left", func() error {
		list, err := server.Admin().ClientList(t.Context()).Result()
		if err != nil {
			return err
		}
		for line := range strings.Lines(list) {
			if strings.Contains(line, "cmd=evalsha") {
				return fmt.Errorf("still there: %s", line)
			}
		}
		return nil
	})
}

// Close does not wait for a frozen server.
func TestCloseWhileARealServerIsFrozen(t *testing.T) {
	server := redistest.Server(t)
	m := newManager(t, server.Client(t))
	mustRun(t, m, newCount("k"))
	server.Freeze()
	defer server.Thaw()
	calls := make([]*started, 3*connections)
	for i := range calls {
		calls[i] = start(m, newCount(fmt.Sprint("k", i)))
	}
	time.Sleep(50 * time.Millisecond)
	pulse := redistest.FeelPulse(t)
	begun := time.Now()
	m.Close()
	pulse.Within(t, "Close", begun, 500*time.Millisecond)
	for _, c := range calls {
		mustMatch(t, c.wait(t, time.Minute), errs.Closed)
	}
}

// Interrupt and Close end callers that wait for the cluster's table, which never loads because the
// first node never answers.
func TestClosingWhileTheClusterTableLoads(t *testing.T) {
	for name, end := range map[string]func(*conn.Manager){
		"Interrupt": (*conn.Manager).Interrupt,
		"Close":     (*conn.Manager).Close,
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Bubble(t, func(t *testing.T) {
				proxy := redistest.Mini(t).Proxy()
				proxy.OnCommand(func(redistest.Command) redistest.Fault { return redistest.Silence })
				rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:6379"}, Dialer: proxy.Dial})
				defer rdb.Close()
				m := newManager(t, rdb)
				c := start(m, newCount("k"))
				time.Sleep(400 * time.Millisecond)
				begun := time.Now()
				end(m)
				mustMatch(t, c.wait(t, 50*time.Millisecond), errs.Closed)
				if took := c.ended.Sub(begun); took > 0 {
					t.Errorf("the caller returned after %v", took)
				}
			})
		})
	}
}

// Interrupt ends a caller that was about to send when Interrupt looked.
func TestInterruptMissesNobody(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		server := redistest.Mini(t)
		proxy := server.Proxy()
		rdb := proxy.Client(t)
		proxy.OnCommand(func(redistest.Command) redistest.Fault { return redistest.Silence })
		for range redistest.Count(t, 20_000) {
			m, err := conn.New(rdb, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			var wg sync.WaitGroup
			for range connections {
				wg.Go(func() { mustMatch(t, m.Run(context.Background(), newCount("k")), errs.Closed) })
			}
			wg.Go(m.Interrupt)
			wg.Wait()
			if took := time.Since(begun); took > 0 {
				t.Errorf("a caller returned only after %v", took)
				m.Close()
				return
			}
			m.Close()
		}
	})
}
