// This file shows that a callback of the user's (a logger, a provider, a hook, a name mapper) cannot stop the
// work of Holdfast, whatever it does, and that nothing tells a whole owner or a password.

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
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
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
	must(t, p.Close())
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
		world.WantErr(t, errOf(p.MyLock.Lock(ctx)), context.DeadlineExceeded)
		world.Within(t, "Lock returned after", w.Now(), 15*time.Second, 15*time.Second)
		w.At(30 * time.Second)
		world.WantErr(t, kept.Err(), holdfast.ErrLost)
		if got := o.by(t, "holdfast.lock.lost", "holdfast.reason", nil); got["server"] != 1 || got["deadline"] != 1 {
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
		work := nothing
		must(t, holdfast.Do(t.Context(), p.MyLock, work, nil, holdfast.OnAcquire(nil), holdfast.OnExit(nil)))
		must(t, errOf(p.Latch("latch").TrySetCount(t.Context(), 1, nil)))
		must(t, errOf(p.Latch("latch").Delete(t.Context())))
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

// A callback that blocks keeps the call that it is of, and nobody else: leases are renewed, other calls
// work, and Close waits for it no longer than it would for Redis.
func TestACallbackThatBlocksKeepsItsOwnCallOnly(t *testing.T) {
	for what, of := range map[string]func(block <-chan struct{}) (holdfast.Option, func(ctx context.Context, p *world.Process) error){
		"a name mapper": func(block <-chan struct{}) (holdfast.Option, func(context.Context, *world.Process) error) {
			return holdfast.WithNameMapper(slowFor("slow", block)), func(ctx context.Context, p *world.Process) error { return errOf(p.Mutex("slow").Lock(ctx)) }
		},
		"a metric group": func(block <-chan struct{}) (holdfast.Option, func(context.Context, *world.Process) error) {
			return holdfast.WithMetricGroup(slowFor("slow", block)), func(ctx context.Context, p *world.Process) error { return errOf(p.Mutex("slow").Lock(ctx)) }
		},
		"a Monitor's": func(block <-chan struct{}) (holdfast.Option, func(context.Context, *world.Process) error) {
			return nil, func(ctx context.Context, p *world.Process) error {
				return p.Monitor(ctx, holdfast.MonitorOptions{Threshold: time.Second, Every: time.Second, OnHeld: func(holdfast.HeldLong) { <-block }})
			}
		},
		"a hook of the grant": func(block <-chan struct{}) (holdfast.Option, func(context.Context, *world.Process) error) {
			return nil, func(ctx context.Context, p *world.Process) error {
				return holdfast.Do(ctx, p.Mutex("slow"), nothing, holdfast.OnAcquire(func(context.Context, holdfast.Handle) { <-block }))
			}
		},
		"a hook of the exit": func(block <-chan struct{}) (holdfast.Option, func(context.Context, *world.Process) error) {
			return nil, func(ctx context.Context, p *world.Process) error {
				return holdfast.Do(ctx, p.Mutex("slow"), nothing, holdfast.OnExit(func(context.Context, holdfast.Handle, error) { <-block }))
			}
		},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			block, unblock := blockade()
			option, call := of(block)
			_, options := newTold()
			p := w.Process(append(options, option)...)
			l := w.Lock(t.Context(), p.Mutex("kept", holdfast.Renewed(9*time.Second)))
			stuck := w.Try(func() (*holdfast.Lease, error) { return nil, call(t.Context(), p) })
			w.At(time.Minute)
			if !stuck.Pending() {
				t.Errorf("it does not block: %v", stuck.Err)
			}
			w.Release(w.Lock(t.Context(), p.Mutex("other")), l)
			closeWithin(t, p, closeBound)
			unblock()
			if err := errOf(stuck.Result()); !errors.Is(err, holdfast.ErrClosed) && !strings.Contains(what, "hook of the exit") {
				t.Errorf("the call that was blocked returned %v", err)
			}
			w.Mini.FlushAll() // Close releases nothing
		})
	}
}

// slowFor returns a function that blocks for that name.
func slowFor(name string, block <-chan struct{}) func(string) string {
	return func(n string) string {
		if n == name {
			<-block
		}
		return n
	}
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
		play(t, handler, func(t *testing.T, w *world.World) {
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
	}
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

// transcript is everything that the Clients have told.
type transcript struct{ redistest.Log }

func (s *transcript) tell(what string, err error) {
	fmt.Fprintf(&s.Log, "%s: %v\n", what, err)
}

func TestNothingSecretIsTold(t *testing.T) {
	t.Parallel()
	const right, wrong = "the-right-password", "the-wrong-password"
	s := redistest.Server(t, "--requirepass", right)
	with := func(password string) *redis.Client {
		return s.Client(t, func(o *redis.Options) { o.Password = password })
	}
	said := new(transcript)
	spans, options := newTold()
	options = append(options, holdfast.WithLogger(slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	a, b, stranger := clienttest.OpenClient(t, with(right), options...), clienttest.OpenClient(t, with(right), options...), clienttest.OpenClient(t, with(wrong), options...)
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}

	held, fair := clienttest.Grab(t, a.Mutex("told")), clienttest.Grab(t, a.FairMutex("told fair"))
	owners := []holdfast.Owner{held.Owner(), fair.Owner()}
	_, err := b.Mutex("told").Lock(short())
	said.tell("a wait in vain", err)
	_, err = b.Mutex("told").Attach(short(), mustParse(t, strings.Repeat("0", 8)+held.Owner().String()[8:]))
	said.tell("an owner that holds nothing", err)
	_, err = stranger.Mutex("told").Lock(short())
	said.tell("a wrong password", err)
	must(t, errOf(b.Mutex("told").ForceRelease(t.Context())))
	said.tell("an Extend of what is lost", held.Extend(short(), time.Minute))
	said.tell("a Release of what is lost", held.Release(short()))
	s.Kill()
	said.tell("a Release without a server", fair.Release(short()))
	_, err = b.Mutex("told").Lock(short())
	said.tell("a Lock without a server", err)
	for _, c := range []*holdfast.Client{a, b, stranger} {
		said.tell("Close", c.Close())
	}
	spans.tellAll(t, said)

	text := said.String()
	for _, secret := range []string{right, wrong, owners[0].String(), owners[1].String(), owners[0].String()[:36]} {
		if at := strings.Index(text, secret); at >= 0 {
			t.Errorf("%.12s… is told: %.300q", secret, text[max(0, at-150):])
		}
	}
	if !strings.Contains(text, owners[0].Short()) {
		t.Errorf("nothing names the owner %s at all:\n%s", owners[0].Short(), text)
	}
}

// mustParse returns an owner from its text.
func mustParse(t *testing.T, text string) holdfast.Owner {
	t.Helper()
	o, err := holdfast.ParseOwner(text)
	must(t, err)
	return o
}

// tellAll writes down all spans and metrics.
func (o told) tellAll(t *testing.T, w *transcript) {
	t.Helper()
	var metrics metricdata.ResourceMetrics
	must(t, o.reader.Collect(context.Background(), &metrics))
	fmt.Fprintf(w, "%+v\n%+v\n", tracetest.SpanStubsFromReadOnlySpans(o.spans.Ended()), metrics)
}
