// This file shows that a callback of the user's (a logger, a provider, a hook, a name mapper)
// cannot stop the work of Holdfast, whatever the callback does.

package holdfast_test

import (
	"context"
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
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// logged is a log handler that calls on and then keeps the message.
type logged struct {
	on func(slog.Record)

	mu    sync.Mutex
	lines []string
}

func (h *logged) Enabled(context.Context, slog.Level) bool { return true }
func (h *logged) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *logged) WithGroup(string) slog.Handler            { return h }

func (h *logged) Handle(_ context.Context, r slog.Record) error {
	if h.on != nil {
		h.on(r)
	}
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line)
	return nil
}

// with returns the lines that contain text.
func (h *logged) with(text string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.lines), func(line string) bool { return !strings.Contains(line, text) })
}

// blockade returns a channel that blocks a callback of the user's until the test calls unblock.
// After ten minutes the channel closes by itself. So a goroutine of Holdfast's that waits for the
// callback, and should not, is only late, and the test ends.
func blockade() (block <-chan struct{}, unblock func()) {
	c := make(chan struct{})
	unblock = sync.OnceFunc(func() { close(c) })
	time.AfterFunc(10*time.Minute, unblock)
	return c, unblock
}

// closeWithin closes p and fails the test if that takes longer than most.
func closeWithin(t *testing.T, p *world.Process, most time.Duration) {
	t.Helper()
	begin := time.Now()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > most {
		t.Errorf("Close took %v, want %v at the most", took, most)
	}
}

// closeBound is the longest that Close takes while functions of the user's block.
const closeBound = 1600 * time.Millisecond

func TestALogHandlerThatBlocksKeepsNobodyWaiting(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		block, unblock := blockade()
		o, options := newTold()
		p := w.Process(append(options, holdfast.WithLogger(slog.New(&logged{on: func(slog.Record) { <-block }})))...)
		lost := w.Lock(t.Context(), p.Mutex("lost"))
		kept := w.Lock(t.Context(), p.Mutex("kept", holdfast.Renewed(10*time.Second)))
		w.Mini.Del("lost")
		w.At(12 * time.Second) // the loss is logged, and the other lease has been renewed
		world.WantErr(t, lost.Err(), holdfast.ErrLost)
		if err := kept.Err(); err != nil {
			t.Errorf("the lease that stands: %v", err)
		}

		p.Unplug(true)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := p.MyLock.Lock(ctx)
		world.WantErr(t, err, context.DeadlineExceeded)
		world.Within(t, "Lock returned after", w.Now(), 15*time.Second, 15*time.Second)
		w.At(30 * time.Second)
		world.WantErr(t, kept.Err(), holdfast.ErrLost)
		if got := o.reasons(t, "holdfast.lost"); got["server"] != 1 || got["deadline"] != 1 {
			t.Errorf("counted losses: %v, want both", got)
		}
		closeWithin(t, p, closeBound)
		unblock()
		w.Mini.FlushAll()
	})
}

func TestALogHandlerThatPanicsEndsNothing(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		h := new(logged)
		h.on = func(r slog.Record) {
			if r.Message == "holdfast: lost" {
				panic("a log handler of the user's")
			}
		}
		p := w.Process(holdfast.WithLogger(slog.New(h)))
		lost := w.Lock(t.Context(), p.Mutex("lost"))
		w.Mini.Del("lost")
		w.At(20 * time.Second)
		world.WantErr(t, lost.Err(), holdfast.ErrLost)
		w.Release(w.Lock(t.Context(), p.MyLock))
		closeWithin(t, p, 0)
		if got := h.with("log lines were lost"); len(got) != 1 || !strings.Contains(got[0], "lines=1") {
			t.Errorf("what was not logged is not said: %q", h.with(""))
		}
	})
}

func TestALogHandlerMayCloseTheClient(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		var p *world.Process
		h := &logged{on: func(slog.Record) { _ = p.Close() }}
		p = w.Process(holdfast.WithLogger(slog.New(h)))
		w.Lock(t.Context(), p.Mutex("lost"))
		w.Mini.Del("lost")
		w.At(20 * time.Second)
		closeWithin(t, p, 0) // the Client is closed already
		if len(h.with("holdfast: lost")) != 1 {
			t.Errorf("logged %q", h.with(""))
		}
	})
}

func TestWhatIsNilIsNone(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		var noTracers *tracenoop.TracerProvider
		var noMeters *metricnoop.MeterProvider
		p := w.Process(nil,
			holdfast.WithLogger(nil), holdfast.WithNameMapper(nil), holdfast.WithDefaults(nil, nil),
			holdfast.WithTracerProvider(nil), holdfast.WithMeterProvider(nil),
			holdfast.WithTracerProvider(noTracers), holdfast.WithMeterProvider(noMeters))
		lost := w.Lock(t.Context(), p.Mutex("lost", nil))
		w.Mini.Del("lost")
		w.At(20 * time.Second) // a goroutine of Holdfast's logs a loss
		world.WantErr(t, lost.Err(), holdfast.ErrLost)
		work := func(context.Context) error { return nil }
		if err := holdfast.Do(t.Context(), p.MyLock, work, nil, holdfast.OnAcquire(nil), holdfast.OnExit(nil)); err != nil {
			t.Error(err)
		}
		if _, err := p.Latch("latch").TrySetCount(t.Context(), 1, nil); err != nil {
			t.Error(err)
		}
		if _, err := p.Latch("latch").Delete(t.Context()); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		world.WantErr(t, p.Monitor(ctx, holdfast.MonitorOptions{Threshold: time.Nanosecond}), context.DeadlineExceeded)
		w.Mini.FlushAll()
	})
}

// strange returns providers that call on for every span and every measurement.
func strange(on func()) []holdfast.Option {
	return []holdfast.Option{
		holdfast.WithTracerProvider(strangeTracers{on: on}),
		holdfast.WithMeterProvider(strangeMeters{on: on}),
	}
}

type strangeTracers struct {
	tracenoop.TracerProvider
	on func()
}

func (p strangeTracers) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return strangeTracer{on: p.on}
}

type strangeTracer struct {
	tracenoop.Tracer
	on func()
}

func (s strangeTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	s.on()
	return s.Tracer.Start(ctx, name, options...)
}

type strangeMeters struct {
	metricnoop.MeterProvider
	on func()
}

func (p strangeMeters) Meter(string, ...metric.MeterOption) metric.Meter {
	return strangeMeter{on: p.on}
}

type strangeMeter struct {
	metricnoop.Meter
	on func()
}

func (m strangeMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return strangeCounter{on: m.on}, nil
}

type strangeCounter struct {
	metricnoop.Int64Counter
	on func()
}

func (c strangeCounter) Add(_ context.Context, n int64, _ ...metric.AddOption) {
	if n > 0 {
		c.on()
	}
}

func TestAProviderThatBlocksKeepsItsOwnCallOnly(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		var blocked <-chan struct{} // nil blocks nobody
		var mu sync.Mutex
		p := w.Process(strange(func() {
			mu.Lock()
			wait := blocked
			mu.Unlock()
			if wait != nil {
				<-wait
			}
		})...)
		var kept []*holdfast.Lease
		for _, one := range []string{"a", "b", "c"} {
			kept = append(kept, w.Lock(t.Context(), p.Mutex(one, holdfast.Renewed(9*time.Second))))
		}
		block, unblock := blockade()
		mu.Lock()
		blocked = block
		mu.Unlock()
		stuck := w.GoLock(t.Context(), p.MyLock) // it is blocked in the tracer
		w.At(time.Minute)
		for _, l := range kept {
			if err := l.Err(); err != nil {
				t.Errorf("a lease is not renewed while a counter blocks: %v", err)
			}
		}
		closeWithin(t, p, closeBound)
		unblock()
		if _, err := stuck.Result(); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("the call that was blocked returned %v", err)
		}
		w.Mini.FlushAll()
	})
}

func TestAProviderThatPanicsLosesNoGrant(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process(strange(func() { panic("a provider of the user's") })...)
		q := w.Process()
		w.Crowd(q, p) // p waits, and is handed the lock
		lost := w.Lock(t.Context(), p.Mutex("lost"))
		l := w.Lock(t.Context(), p.MyLock)
		w.Mini.Del("lost")
		w.At(w.Now() + 45*time.Second)
		world.WantErr(t, lost.Err(), holdfast.ErrLost)
		w.Release(l)
		closeWithin(t, p, 0)
		w.WantFree()
	})
}

func TestAMonitorsCallbackThatBlocksKeepsNobodyElse(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.Mutex("long", holdfast.Renewed(9*time.Second)))
		block, unblock := blockade()
		ended := make(chan error, 1)
		go func() {
			ended <- p.Monitor(t.Context(), holdfast.MonitorOptions{
				Threshold: time.Second, Every: time.Second,
				OnHeld: func(holdfast.HeldLong) { <-block },
			})
		}()
		w.At(time.Minute)
		if err := l.Err(); err != nil {
			t.Error(err)
		}
		w.Release(w.Lock(t.Context(), p.MyLock))
		w.Release(l)
		closeWithin(t, p, 0)
		unblock()
		world.WantErr(t, <-ended, holdfast.ErrClosed)
	})
}

func TestAHookOfDoThatBlocksKeepsNobodyElse(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		block, unblock := blockade()
		done := make(chan error, 2)
		work := func(context.Context) error { return nil }
		go func() {
			done <- holdfast.Do(t.Context(), p.Mutex("entering"), work,
				holdfast.OnAcquire(func(context.Context, holdfast.Handle) { <-block }))
		}()
		go func() {
			done <- holdfast.Do(t.Context(), p.Mutex("leaving"), work,
				holdfast.OnExit(func(context.Context, holdfast.Handle, error) { <-block }))
		}()
		w.At(time.Minute)
		w.Release(w.Lock(t.Context(), p.MyLock))
		w.Release(w.Lock(t.Context(), p.Mutex("leaving")))
		closeWithin(t, p, 0)
		unblock()
		<-done
		<-done
		w.Mini.FlushAll() // Close releases nothing
	})
}

func TestANameMapperThatBlocksKeepsNobodyElse(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		block, unblock := blockade()
		p := w.Process(holdfast.WithNameMapper(func(name string) string {
			if name == "slow" {
				<-block
			}
			return name
		}))
		l := w.Lock(t.Context(), p.Mutex("kept", holdfast.Renewed(9*time.Second)))
		stuck := w.Try(func() (*holdfast.Lease, error) { return p.Mutex("slow").Lock(t.Context()) })
		w.At(time.Minute)
		w.Release(w.Lock(t.Context(), p.Mutex("other")))
		w.Release(l)
		closeWithin(t, p, 0)
		unblock()
		if _, err := stuck.Result(); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("the call whose name was mapped late: %v", err)
		}
		synctest.Wait()
	})
}

// A dialer need not look at its context: the TLS dialer of go-redis does not.
func TestADialThatIgnoresItsContextKeepsCloseNoLonger(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		q := w.Process()
		l := w.Lock(t.Context(), q.MyLock)
		p := &world.Process{W: w, Net: w.Mini.Proxy()}
		var blocked atomic.Bool
		block, unblock := blockade()
		p.Client = holdfast.New(p.Net.Client(t, func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if blocked.Load() {
					<-block
					return nil, errors.New("no answer")
				}
				return p.Net.Dial(ctx, network, addr)
			}
		}))
		waits := w.GoLock(t.Context(), p.Mutex(world.Name))
		w.At(2 * time.Second)
		blocked.Store(true)
		p.Net.Cut()
		w.At(3 * time.Second)
		closeWithin(t, p, closeBound)
		if _, err := waits.Result(); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("the waiter: %v", err)
		}
		unblock()
		synctest.Wait()
		w.Release(l)
	})
}

func TestTheLogSaysWhenRenewalsBeginToFailAndWhenThatIsOver(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		h := new(logged)
		p := w.Process(holdfast.WithLogger(slog.New(h)))
		var all []*holdfast.Lease
		for i := range 20 {
			all = append(all, w.Lock(t.Context(), p.Mutex(fmt.Sprint("m", i), holdfast.Renewed(9*time.Second))))
		}
		p.Unplug(true)
		w.At(6 * time.Second)
		p.Unplug(false)
		w.At(10 * time.Second)
		for _, text := range []string{"renewals fail", "renewals get through again"} {
			if got := h.with(text); len(got) != 1 {
				t.Errorf("%q is logged %d times: %q", text, len(got), h.with(""))
			}
		}
		for _, l := range all {
			w.Release(l)
		}
	})
}

func TestALossIsLoggedAsOneReadsIt(t *testing.T) {
	for handler, want := range map[string]string{
		"text": `name=orders:42 owner=`,
		"json": `"name":"orders:42","owner":`,
	} {
		t.Run(handler, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				said := new(transcript)
				var to slog.Handler = slog.NewTextHandler(said, nil)
				if handler == "json" {
					to = slog.NewJSONHandler(said, nil)
				}
				p := w.Process(holdfast.WithLogger(slog.New(to)))
				w.Lock(t.Context(), p.Mutex("orders:42"))
				w.Mini.Del("orders:42")
				w.At(10 * time.Second)
				closeWithin(t, p, 0)
				for _, part := range []string{want, "10"} {
					if !strings.Contains(said.String(), part) || !strings.Contains(said.String(), "held") {
						t.Errorf("%s does not contain %s", said, part)
					}
				}
				w.Mini.FlushAll()
			})
		})
	}
}

// reasons returns the counts of a counter, by reason.
func (o told) reasons(t *testing.T, counter string) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := o.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int64)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != counter {
				continue
			}
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				reason, _ := p.Attributes.Value("holdfast.reason")
				counts[reason.AsString()] += p.Value
			}
		}
	}
	return counts
}

// boundTo is a context of the program that ends with a lease, and asks that lease.
type boundTo struct {
	context.Context
	l *holdfast.Lease
}

func (c boundTo) Err() error {
	if err := c.l.Err(); err != nil {
		return err
	}
	return c.Context.Err()
}

func TestTheParentOfALeasesContextMayAskTheLease(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		l := w.Lock(t.Context(), w.Process().MyLock)
		parent, cancel := context.WithCancel(t.Context())
		ctx := l.Context(boundTo{parent, l})
		cancel()
		<-ctx.Done()
		w.Release(l)
		if ended := l.Context(boundTo{parent, l}); ended.Err() == nil {
			t.Error("a context of a parent that has ended goes on")
		}
	})
}
