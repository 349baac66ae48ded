// Clean-ups go on between Interrupt and Close, and nothing is left after Close.

package conn_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

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

// each runs test with n Managers in virtual time, one after the other.
func each(t *testing.T, n int, test func(t *testing.T, m *conn.Manager, proxy *redistest.FaultProxy)) {
	redistest.Bubble(t, func(t *testing.T) {
		proxy := redistest.Mini(t).Proxy()
		rdb := proxy.Client(t)
		for range n {
			m, err := conn.New(rdb, slog.New(slog.DiscardHandler), conn.Events{})
			if err != nil {
				t.Fatal(err)
			}
			if test(t, m, proxy); t.Failed() {
				return
			}
		}
	})
}

// Several goroutines call Close while callers come and go. Nothing is left.
func TestCloseUnderLoad(t *testing.T) {
	each(t, redistest.Count(t, 200), func(t *testing.T, m *conn.Manager, proxy *redistest.FaultProxy) {
		var all sync.WaitGroup
		var ran atomic.Int64
		busy := make(chan struct{})
		for i := range 16 {
			all.Go(func() {
				for {
					if err := m.Run(context.Background(), numbered(i)); err != nil {
						mustMatch(t, err, errs.Closed)
						return
					}
					if ran.Add(1) == 50 {
						close(busy)
					}
				}
			})
		}
		<-busy
		for _, end := range []func(){m.Interrupt, m.Close, m.Close} {
			all.Go(end)
		}
		all.Wait()
		synctest.Wait()
		if n := proxy.Conns(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// Interrupt ends a caller that was about to send when Interrupt looked.
func TestInterruptMissesNobody(t *testing.T) {
	each(t, redistest.Count(t, 20_000), func(t *testing.T, m *conn.Manager, proxy *redistest.FaultProxy) {
		proxy.OnCommand(func(redistest.Command) redistest.Fault { return redistest.Silence })
		takes(t, 0, func() {
			var wg sync.WaitGroup
			for range connections {
				wg.Go(func() { mustMatch(t, m.Run(context.Background(), newCount("k")), errs.Closed) })
			}
			wg.Go(m.Interrupt)
			wg.Wait()
			m.Close()
		})
	})
}
