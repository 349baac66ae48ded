// The tests show what the Monitor reports, and how often.

package holdfast_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// monitored is a Monitor that runs on its own goroutine.
type monitored struct {
	cancel  context.CancelFunc
	reports []string // "<at> <name> <kind> <owner> <age> <known>"
	errs    []error
	done    chan error
}

func monitor(t *testing.T, c *holdfast.Client, threshold, every time.Duration) *monitored {
	ctx, cancel := context.WithCancel(t.Context())
	m := &monitored{cancel: cancel, done: make(chan error, 1)}
	start := time.Now()
	go func() {
		m.done <- c.Monitor(ctx, holdfast.MonitorOptions{
			Threshold: threshold,
			Every:     every,
			OnHeld: func(h holdfast.HeldLong) {
				m.reports = append(m.reports, fmt.Sprintf("%v %s %s %s %v %v",
					time.Since(start), h.Name, h.Kind, cmp.Or(h.Holder.Permit, h.Holder.Owner.String()), h.Age, h.AgeKnown))
				if h.Holder.Remaining <= 0 && h.Holder.Remaining != holdfast.NoExpiry {
					t.Errorf("%v: no time left", h)
				}
			},
			OnError: func(err error) { m.errs = append(m.errs, err) },
		})
	}()
	return m
}

// end ends the Monitor and fails the test unless it reported exactly that.
func (m *monitored) end(t *testing.T, want ...string) {
	t.Helper()
	m.cancel()
	world.WantErr(t, <-m.done, context.Canceled)
	if !slices.Equal(m.reports, want) {
		t.Errorf("reported\n%q\nwant\n%q", m.reports, want)
	}
}

func TestMonitorReportsOncePerPeriod(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		reader := sdkmetric.NewManualReader()
		watching := holdfast.New(mini.Client(), holdfast.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		defer watching.Close()
		m := monitor(t, watching, 15*time.Second, 10*time.Second)

		time.Sleep(4 * time.Second)
		l, err := c.Mutex("mine").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // 9
		holder := javaHolder()
		rdb.HSet(t.Context(), "java", holder, 1)
		if _, err := c.Semaphore("count").TrySetPermits(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		short, err := c.Mutex("short").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(12 * time.Second) // 21
		if err := short.Release(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(14 * time.Second) // 35
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second) // 45
		rdb.Del(t.Context(), "java")
		time.Sleep(10 * time.Second) // 55
		m.end(t,
			fmt.Sprintf("20s mine mutex %s 16s true", l.Owner()),
			fmt.Sprintf("30s java mutex %s 20s false", holder),
			fmt.Sprintf("30s mine mutex %s 26s true", l.Owner()),
			fmt.Sprintf("40s java mutex %s 30s false", holder),
		)
		if n := longHeld(t, reader); n != 4 {
			t.Errorf("holdfast.lock.long_held is %d, want 4", n)
		}
	})
}

// longHeld returns the sum of holdfast.lock.long_held.
func longHeld(t *testing.T, reader *sdkmetric.ManualReader) (n int64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "holdfast.lock.long_held" {
				for _, p := range sum.DataPoints {
					n += p.Value
				}
			}
		}
	}
	return n
}

// A lock passes from one holder to the next, and no holder has it for long. The Monitor reports
// none of them, and no Java holder either.
func TestMonitorTellsHoldsApart(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		m := monitor(t, c, 12*time.Second, 5*time.Second)
		for range 6 {
			l, err := c.Mutex("mine").Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rdb.HSet(t.Context(), "java", javaHolder(), 1)
			time.Sleep(8 * time.Second)
			rdb.Del(t.Context(), "java")
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		m.end(t)
	})
}

// Of several permits the Monitor reports the permit that it has seen for longest. That may be a
// renewed permit or a permit of Java, but no permit that is given back in time.
func TestMonitorPermits(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		permits := c.PermitSemaphore("p")
		if _, err := permits.TrySetPermits(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		acquire := func(n int) *lease.Lease {
			l, err := permits.Acquire(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		java := redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: "sixteen bytes 01"}
		time.Sleep(time.Millisecond)
		first := acquire(1)
		m := monitor(t, c, 12*time.Second, 10*time.Second)
		time.Sleep(5 * time.Second)
		for range 4 { // each for too short a time to be reported
			second := acquire(3)
			time.Sleep(4 * time.Second)
			if err := second.Release(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
		}
		if err := first.Release(t.Context()); err != nil { // 25
			t.Error(err)
		}
		rdb.ZAdd(t.Context(), "{p}:timeout", java)
		time.Sleep(30 * time.Second) // 55
		m.end(t,
			fmt.Sprintf("20s p permits %s 20s false", permits.IDs(first)[0]),
			fmt.Sprintf("50s p permits %x 20s false", java.Member),
		)
	})
}

// Of several readers the Monitor reports the reader that it has seen for longest. Of a writer it
// knows the age.
func TestMonitorReadWriteLock(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		rw := c.RWMutex("rw")
		lock := func(lock func(context.Context) (*lease.Lease, error)) *lease.Lease {
			l, err := lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		time.Sleep(time.Millisecond)
		first := lock(rw.RLock)
		m := monitor(t, c, 12*time.Second, 10*time.Second)
		time.Sleep(5 * time.Second)
		second := lock(rw.RLock)
		time.Sleep(16 * time.Second) // 21
		if err := errors.Join(first.Release(t.Context()), second.Release(t.Context())); err != nil {
			t.Error(err)
		}
		writer := lock(rw.Lock)
		time.Sleep(24 * time.Second) // 45
		m.end(t,
			fmt.Sprintf("20s rw rwlock %s 20s false", first.Owner()),
			fmt.Sprintf("40s rw rwlock %s 19s true", writer.Owner()),
		)
		if err := writer.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The Monitor does not forget a hold that it could not look at for a while.
func TestMonitorGoesOnAfterAnOutage(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		mini := redistest.Mini(t)
		rdb, net := mini.Client(), mini.Proxy()
		c := holdfast.New(net.Client(t))
		defer c.Close()
		holder := javaHolder()
		rdb.HSet(t.Context(), "java", holder, 1)
		m := monitor(t, c, 25*time.Second, 10*time.Second)
		time.Sleep(5 * time.Second)
		net.Refuse(true)
		net.Cut()
		time.Sleep(10 * time.Second)
		net.Refuse(false)
		time.Sleep(16 * time.Second)
		m.end(t, fmt.Sprintf("30s java mutex %s 30s false", holder))
		if len(m.errs) != 1 {
			t.Errorf("errors %v, want one", m.errs)
		}
	})
}

func TestMonitorEnds(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		for _, options := range []holdfast.MonitorOptions{{}, {Threshold: -1}, {Threshold: 1, Every: -1}} {
			world.WantErr(t, c.Monitor(t.Context(), options), holdfast.ErrBadArgument)
		}
		world.WantErr(t, holdfast.New(nil).Monitor(t.Context(), holdfast.MonitorOptions{Threshold: 1}), holdfast.ErrBadArgument)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		world.WantErr(t, c.Monitor(ctx, holdfast.MonitorOptions{Threshold: time.Second}), context.DeadlineExceeded)

		time.AfterFunc(15*time.Second, func() { c.Close() })
		world.WantErr(t, c.Monitor(t.Context(), holdfast.MonitorOptions{Threshold: time.Second}), holdfast.ErrClosed)
	})
}

func TestMonitorOnRealServers(t *testing.T) {
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		server := redistest.Server(t)
		monitorReal(t, server.Client(t), server.Client(t))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		set := redistest.Cluster(t, 3, 0)
		monitorReal(t, set.Client(t), set.Client(t))
	})
}

// monitorReal lets Go and Java hold ten locks each, spread over the masters, and waits until the
// Monitor has reported each lock twice.
func monitorReal(t *testing.T, rdb, admin redis.UniversalClient) {
	c := clienttest.OpenClient(t, rdb)
	ctx, cancel := context.WithCancel(clienttest.Generous(t))
	defer cancel()
	const locks = 10
	for k := range locks {
		l := clienttest.Grab(t, c.Mutex(fmt.Sprint("go:", k)))
		t.Cleanup(func() { _ = l.Release(context.Background()) })
		admin.HSet(ctx, fmt.Sprint("java:", k), javaHolder(), 1)
	}
	const threshold = 200 * time.Millisecond
	reports := make(map[string]int)
	err := c.Monitor(ctx, holdfast.MonitorOptions{
		Pattern: "*:*", Threshold: threshold, Every: 50 * time.Millisecond,
		OnHeld: func(h holdfast.HeldLong) {
			if reports[h.Name]++; h.Age <= threshold || h.AgeKnown != (h.Name[:3] == "go:") {
				t.Errorf("%v", h)
			}
			twice := 0
			for _, n := range reports {
				if n >= 2 {
					twice++
				}
			}
			if twice == 2*locks {
				cancel()
			}
		},
		OnError: func(err error) { t.Error(err) },
	})
	world.WantErr(t, err, context.Canceled)
}
