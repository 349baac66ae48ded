// What spans, metrics and the log say of each kind, and of the group of its name; that a callback of the user's (a logger, a
// provider, a hook, a name mapper) cannot stop the work of Holdfast; and that nothing tells a whole owner or a password.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/once"
)

// told is what spans and metrics say of one kind.
type told struct {
	spans  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
}

func newTold() (told, []holdfast.Option) {
	o := told{tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()}
	return o, []holdfast.Option{
		holdfast.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(o.spans))),
		holdfast.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(o.reader))),
	}
}

// ofKind returns the name and the outcome of each span of a kind.
func (o told) ofKind(kind string) []string {
	var all []string
	for _, span := range o.spans.Ended() {
		attributes := attribute.NewSet(span.Attributes()...)
		if v, _ := attributes.Value("holdfast.kind"); v.AsString() != kind {
			continue
		}
		outcome, _ := attributes.Value("holdfast.outcome")
		all = append(all, strings.TrimPrefix(span.Name(), "holdfast.lock.")+" "+outcome.AsString())
	}
	return all
}

// wantTold fails the test unless the spans of a kind are these and its metrics agree with them.
func (o told) wantTold(t *testing.T, kind string, spans ...string) {
	t.Helper()
	if got := o.ofKind(kind); !slices.Equal(got, spans) {
		t.Errorf("%s: spans %q, want %q", kind, got, spans)
	}
	want := make(map[string]int64)
	for _, span := range spans {
		if outcome, is := strings.CutPrefix(span, "acquire "); is {
			want[outcome]++
		}
	}
	if got := o.counted(t, "holdfast.acquire.duration", kind); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: acquisitions %v, want %v", kind, got, want)
	}
	if got := o.counted(t, "holdfast.waiter.active", kind); got[""] != 0 {
		t.Errorf("%s: %d wait still", kind, got[""])
	}
}

// waitInVain waits twice: the first wait ends by its deadline, and the second is cancelled.
func waitInVain(t *testing.T, wait func(context.Context) error) {
	t.Helper()
	world.WantErr(t, wait(redistest.Within(t, 300*time.Millisecond)), context.DeadlineExceeded, holdfast.ErrBusy)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	world.WantErr(t, wait(ctx), context.Canceled, holdfast.ErrBusy)
}

// A count that can be waited for tells of each outcome of a wait. What was refused before tells nothing.
func TestTelemetry_SemaphoreAndLatch(t *testing.T) {
	play(t, "semaphore", func(t *testing.T, w *world.World) {
		o, options := newTold()
		s := w.Process(options...).Semaphore(world.Name)
		must(t, errOf(s.TrySetPermits(t.Context(), 1)))
		acquire := func(ctx context.Context) error { return s.Acquire(ctx, 1) }
		must(t, acquire(t.Context()))
		world.WantErr(t, s.TryAcquire(t.Context(), 1), holdfast.ErrBusy)
		waitInVain(t, acquire)
		must(t, s.Release(t.Context(), 1))
		world.WantErr(t, s.Acquire(t.Context(), -1), holdfast.ErrBadArgument)
		synctest.Wait()
		o.wantTold(t, "semaphore", "acquire acquired", "acquire busy", "acquire timeout", "acquire cancelled", "release released")
		w.Mini.FlushAll() // a semaphore stays in Redis
	})
	play(t, "latch", func(t *testing.T, w *world.World) {
		o, options := newTold()
		l := w.Process(options...).Latch(world.Name)
		must(t, errOf(l.TrySetCount(t.Context(), 1)))
		waitInVain(t, l.Wait)
		time.AfterFunc(time.Second, func() { must(t, errOf(l.CountDown(context.Background()))) })
		must(t, l.Wait(t.Context()))
		synctest.Wait()
		o.wantTold(t, "latch", "acquire timeout", "acquire cancelled", "acquire acquired")
		w.Mini.FlushAll() // the ledger stays for a while
	})
}

// A campaign is an acquisition, and a term is a hold. Those who watch are not counted as waiters.
func TestTelemetry_Leader(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		o, options := newTold()
		mine, rival := w.Process(options...).Leader(world.Name), w.Process().Leader(world.Name)
		stop := background(t, func(ctx context.Context) {
			_ = rival.Run(ctx, func(ctx context.Context, _ *holdfast.Term) error { <-ctx.Done(); return nil })
		})
		synctest.Wait()
		lead := func(ctx context.Context) error {
			return mine.Run(ctx, func(context.Context, *holdfast.Term) error {
				time.Sleep(time.Second)
				if got := o.counted(t, "holdfast.lock.active", "leader"); got[""] != 1 {
					t.Errorf("%d terms", got[""])
				}
				return nil
			})
		}
		waitInVain(t, lead)
		stop()
		must(t, lead(t.Context()))
		synctest.Wait()
		o.wantTold(t, "leader", "acquire timeout", "acquire cancelled", "acquire acquired", "release released")
		if got := o.counted(t, "holdfast.waiter.active", "leader.watch"); got[""] != 0 {
			t.Errorf("%d watch still", got[""])
		}
	})
}

func TestTelemetry_Quorum(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		o, options := newTold()
		var ours, theirs []*holdfast.Client
		var minis []*redistest.MiniServer
		for i := range 3 {
			mini := redistest.Mini(t)
			minis = append(minis, mini)
			server := mini.Proxy()
			at := func(o *redis.Options) { o.Addr = fmt.Sprintf("server%d:6379", i) }
			ours = append(ours, clienttest.OpenClient(t, server.Client(t, at), options...))
			theirs = append(theirs, clienttest.OpenClient(t, server.Client(t, at)))
		}
		q, rival := holdfast.NewQuorum(world.Name, ours), holdfast.NewQuorum(world.Name, theirs)
		held, err := rival.Lock(t.Context())
		must(t, err)
		world.WantErr(t, errOf(q.TryLock(t.Context())), holdfast.ErrBusy)
		waitInVain(t, func(ctx context.Context) error { return errOf(q.Lock(ctx)) })
		must(t, held.Release(t.Context()))

		outer, err := q.Lock(t.Context())
		must(t, err)
		inner, err := q.Lock(outer.Context(t.Context()))
		must(t, err)
		for what, err := range map[string]error{"inner": inner.Release(t.Context()), "outer": outer.Release(t.Context())} {
			if err != nil {
				t.Errorf("Release, %s: %v", what, err)
			}
		}
		world.WantErr(t, outer.Release(t.Context()), holdfast.ErrReleased)
		synctest.Wait()
		o.wantTold(t, "quorum", "acquire busy", "acquire timeout", "acquire cancelled",
			"acquire acquired", "acquire acquired", "release released", "release released", "release repeated")
		if got := o.counted(t, "holdfast.lock.active", "quorum"); got[""] != 0 {
			t.Errorf("%d are held still", got[""])
		}

		survivor, err := q.Lock(t.Context())
		must(t, err)
		minis[0].Del(world.Name)
		time.Sleep(11 * time.Second)
		must(t, survivor.Err())
		for kind, want := range map[string]int64{"quorum.member": 1, "quorum": 0, "mutex": 0} {
			if got := o.counted(t, "holdfast.lock.lost", kind); got[""] != want {
				t.Errorf("%s: %d lost, want %d", kind, got[""], want)
			}
		}
		must(t, survivor.Release(t.Context()))
		for _, c := range append(ours, theirs...) {
			c.Close()
		}
	})
}

// beforeColon is the group of "orders:42": "orders".
func beforeColon(name string) string {
	group, _, _ := strings.Cut(name, ":")
	return group
}

// pointsOf calls f for each point of each metric.
func pointsOf(t *testing.T, reader sdkmetric.Reader, f func(metric string, attributes attribute.Set, n int64)) {
	t.Helper()
	var all metricdata.ResourceMetrics
	must(t, reader.Collect(context.Background(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					f(m.Name, p.Attributes, int64(p.Count))
				}
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					f(m.Name, p.Attributes, int64(p.Count))
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					f(m.Name, p.Attributes, p.Value)
				}
			}
		}
	}
}

// by sums up the points of a metric that match, by the value of an attribute.
func (o told) by(t *testing.T, metric string, key attribute.Key, match func(attribute.Set) bool) map[string]int64 {
	t.Helper()
	counts := make(map[string]int64)
	pointsOf(t, o.reader, func(name string, attributes attribute.Set, n int64) {
		if name == metric && (match == nil || match(attributes)) {
			value, _ := attributes.Value(key)
			counts[value.AsString()] += n
		}
	})
	return counts
}

// counted returns the counts that a metric has for a kind, by outcome.
func (o told) counted(t *testing.T, metric, kind string) map[string]int64 {
	t.Helper()
	return o.by(t, metric, "holdfast.outcome", func(a attribute.Set) bool {
		v, _ := a.Value("holdfast.kind")
		return v.AsString() == kind
	})
}

// groupsOf returns the groups that each metric has, by kind: "holdfast.lock.active mutex".
func groupsOf(t *testing.T, reader sdkmetric.Reader) map[string][]string {
	t.Helper()
	groups := make(map[string][]string)
	pointsOf(t, reader, func(metric string, set attribute.Set, _ int64) {
		kind, _ := set.Value("holdfast.kind")
		group, there := set.Value("holdfast.group")
		value := group.AsString()
		if !there {
			value = "none"
		}
		if key := strings.TrimSpace(metric + " " + kind.AsString()); !slices.Contains(groups[key], value) {
			groups[key] = append(groups[key], value)
		}
	})
	return groups
}

// wantGroups fails the test unless every metric that has a kind has that group, and no other metric has one.
func wantGroups(t *testing.T, reader sdkmetric.Reader, want string, metrics ...string) {
	t.Helper()
	got := groupsOf(t, reader)
	for _, metric := range metrics {
		if got[metric] == nil {
			t.Errorf("%s was not recorded", metric)
		}
	}
	for metric, groups := range got {
		_, kind, ofKind := strings.Cut(metric, " ")
		one := want
		if !ofKind || kind == "multi" {
			one = "none"
		}
		if len(groups) != 1 || groups[0] != one {
			t.Errorf("%s has the groups %q, want %q", metric, groups, one)
		}
	}
}

// A lock's whole life: it waits, holds, is renewed, is reported as held for long, loses, releases.
func TestTheGroupOfANameIsOnItsMetrics(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		o, options := newTold()
		p, q := w.Process(append(options, holdfast.WithMetricGroup(beforeColon))...), w.Process()
		held := w.Lock(t.Context(), q.Mutex("orders:1"))
		waits := w.GoLock(t.Context(), p.Mutex("orders:1", holdfast.Renewed(9*time.Second)))
		w.At(2 * time.Second)
		w.Release(held)
		l := granted(t, waits)
		w.At(10 * time.Second) // it has been renewed
		watch := redistest.Within(t, time.Second)
		world.WantErr(t, p.Monitor(watch, holdfast.MonitorOptions{Threshold: time.Second}), context.DeadlineExceeded)
		w.Release(l)
		lost := w.Lock(t.Context(), p.Mutex("orders:2", holdfast.Renewed(9*time.Second)))
		expires := w.Lock(t.Context(), p.Mutex("orders:3", holdfast.Fixed(time.Second)))
		w.Mini.Del("orders:2")
		w.At(20 * time.Second)
		world.WantErr(t, lost.Err(), holdfast.ErrLost)
		world.WantErr(t, expires.Err(), holdfast.ErrExpired)
		wantGroups(t, o.reader, "orders",
			"holdfast.acquire.duration mutex", "holdfast.hold.duration mutex", "holdfast.lock.active mutex",
			"holdfast.waiter.active mutex", "holdfast.renewals mutex", "holdfast.lock.lost mutex",
			"holdfast.wakeups mutex", "holdfast.lock.long_held mutex",
			"holdfast.renewal.duration", "holdfast.pubsub.reconnects")
	})
}

// However a hold of permits ends, they are counted until then.
func TestPermitsAreCounted(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		o, options := newTold()
		p := w.Process(options...)
		want := func(n int64) {
			t.Helper()
			synctest.Wait() // what ended alone is counted soon
			if got := o.by(t, "holdfast.permit.active", "server.address", nil); got["localhost"] != n {
				t.Errorf("at %v: %v permits, want %d", w.Now(), got, n)
			}
		}
		s := p.PermitSemaphore("jobs")
		must(t, s.SetPermits(t.Context(), 20))
		acquire := func(n int, options ...holdfast.LeaseOption) *holdfast.Lease {
			l, err := p.PermitSemaphore("jobs", options...).Acquire(t.Context(), n)
			must(t, err)
			return l
		}
		released, expires := acquire(4), acquire(8, holdfast.Fixed(time.Second))
		acquire(2, holdfast.Renewed(9*time.Second))
		want(14)
		w.Release(released)
		want(10)
		w.At(2 * time.Second)
		world.WantErr(t, expires.Err(), holdfast.ErrExpired)
		want(2)
		w.Mini.FlushAll() // the rest is lost
		w.At(10 * time.Second)
		want(0)
	})
}

// Groups are of the names as the program uses them, which have no prefix of an environment.
func TestEveryKindHasItsGroup(t *testing.T) {
	uses := map[string]func(t *testing.T, c *holdfast.Client) error{
		"multi": func(t *testing.T, c *holdfast.Client) error {
			return holdfast.Do(t.Context(), holdfast.NewMultiLock(c.Mutex("orders:1"), c.Mutex("orders:2")), nothing)
		},
		"quorum": func(t *testing.T, c *holdfast.Client) error {
			return holdfast.Do(t.Context(), holdfast.NewQuorum("orders:1", []*holdfast.Client{c}), nothing)
		},
		"once": func(t *testing.T, c *holdfast.Client) error {
			return once.Do(t.Context(), c.Once("orders:1"), "a key", nothing)
		},
		"semaphore": func(t *testing.T, c *holdfast.Client) error {
			s := c.Semaphore("orders:1")
			_, err := s.TrySetPermits(t.Context(), 1)
			return errors.Join(err, s.Acquire(t.Context(), 1))
		},
		"latch": func(t *testing.T, c *holdfast.Client) error {
			_, err := c.Latch("orders:1").TrySetCount(t.Context(), 1)
			time.AfterFunc(time.Second, func() { _, _ = c.Latch("orders:1").CountDown(context.Background()) })
			return errors.Join(err, c.Latch("orders:1").Wait(t.Context()))
		},
		"limiter": func(t *testing.T, c *holdfast.Client) error {
			return c.Limiter("orders:1", limiter.Rate(1, time.Second)).Wait(t.Context(), 1)
		},
		"barrier": func(t *testing.T, c *holdfast.Client) error {
			b := c.Barrier("orders:1", 2)
			time.AfterFunc(time.Second, func() { _, _ = b.Await(context.Background()) })
			_, err := b.Await(t.Context())
			return err
		},
		"leader.watch": func(t *testing.T, c *holdfast.Client) error {
			ctx := redistest.Within(t, time.Second)
			err := c.Leader("orders:1").Run(ctx, func(context.Context, *leader.Term) error { <-ctx.Done(); return nil })
			if !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			return nil
		},
	}
	for kind, locker := range lockers {
		uses[kind] = func(t *testing.T, c *holdfast.Client) error {
			return holdfast.Do(t.Context(), locker(c, "orders:1"), nothing)
		}
	}
	for kind, use := range uses {
		play(t, kind, func(t *testing.T, w *world.World) {
			o, options := newTold()
			p := w.Process(append(options, holdfast.WithMetricGroup(beforeColon),
				holdfast.WithNameMapper(func(name string) string { return "staging:" + name }))...)
			must(t, use(t, p.Client))
			w.At(10 * time.Second)
			recorded := slices.Collect(maps.Keys(groupsOf(t, o.reader)))
			if !slices.ContainsFunc(recorded, func(metric string) bool { return strings.HasSuffix(metric, " "+kind) }) {
				t.Error("nothing was recorded of that kind")
			}
			wantGroups(t, o.reader, "orders")
			w.Mini.FlushAll()
		})
	}
}

// A hold that was taken over counts as one that was asked for.
func TestAHoldThatIsTakenOverIsCountedByKindAndGroup(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		o, options := newTold()
		p, q := w.Process(), w.Process(append(options, holdfast.WithMetricGroup(beforeColon))...)
		owner, err := w.Lock(t.Context(), p.Mutex("orders:1")).Detach(t.Context())
		must(t, err)
		l, err := q.Mutex("orders:1", holdfast.Renewed(9*time.Second)).Attach(t.Context(), owner)
		must(t, err)
		w.At(10 * time.Second) // it has been renewed
		w.Release(l)
		wantGroups(t, o.reader, "orders", "holdfast.hold.duration mutex", "holdfast.lock.active mutex",
			"holdfast.renewals mutex", "holdfast.lock.lost mutex")
		if groups, there := groupsOf(t, o.reader)["holdfast.lock.active"]; there {
			t.Errorf("a hold is counted without a kind: %v", groups)
		}
	})
}

// Once a candidate is elected, nobody asks the function for it. An election gives its lead up, whatever blocks.
func TestAMetricGroupThatBlocksKeepsNoLead(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		block, unblock := blockade()
		defer unblock()
		_, options := newTold()
		var asked atomic.Int64
		p := w.Process(append(options, holdfast.WithMetricGroup(func(name string) string {
			if asked.Add(1) > 1 {
				<-block
			}
			return name
		}))...)
		led := make(chan error, 1)
		go func() {
			led <- p.Leader("orders:1").Run(context.Background(), func(context.Context, *leader.Term) error {
				time.Sleep(time.Second)
				return nil
			})
		}()
		w.At(time.Minute)
		if len(led) > 0 {
			redistest.Check(t, <-led)
		} else {
			t.Error("the work has returned, and the lead is kept")
		}
	})
}

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
		world.WantErr(t, errOf(p.MyLock.Lock(redistest.Within(t, 3*time.Second))), context.DeadlineExceeded)
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
		h := &logged{on: func(r slog.Record) {
			if r.Message == "holdfast: lost" {
				panic("a log handler of the user's")
			}
		}}
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
		must(t, holdfast.Do(t.Context(), p.MyLock, nothing, nil, holdfast.OnAcquire(nil), holdfast.OnExit(nil)))
		must(t, errOf(p.Latch("latch").TrySetCount(t.Context(), 1, nil)))
		must(t, errOf(p.Latch("latch").Delete(t.Context())))
		ctx := redistest.Within(t, time.Second)
		world.WantErr(t, p.Monitor(ctx, holdfast.MonitorOptions{Threshold: time.Nanosecond}), context.DeadlineExceeded)
		w.Mini.FlushAll()
	})
}

// strange returns providers that call on for every span and every measurement.
func strange(on func()) []holdfast.Option {
	spans := strangeSpans{tracetest.NewSpanRecorder(), on}
	return []holdfast.Option{
		holdfast.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))),
		holdfast.WithMeterProvider(&world.Meters{Counted: func(_ string, n int64) {
			if n > 0 {
				on()
			}
		}}),
	}
}

type strangeSpans struct {
	*tracetest.SpanRecorder
	on func()
}

func (s strangeSpans) OnStart(context.Context, sdktrace.ReadWriteSpan) { s.on() }

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

func TestACallbackThatPanicsLosesNoGrant(t *testing.T) {
	o, group := newTold()
	group = append(group, holdfast.WithMetricGroup(func(string) string { panic("a function of the user's") }))
	for what, options := range map[string][]holdfast.Option{
		"a provider":     strange(func() { panic("a provider of the user's") }),
		"a metric group": group,
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(options...), w.Process()
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
	wantGroups(t, o.reader, "other", "holdfast.acquire.duration mutex")
}

// A callback that blocks keeps the call that it is of, and nobody else: leases are renewed, other calls
// work, and Close waits for it no longer than it would for Redis.
func TestACallbackThatBlocksKeepsItsOwnCallOnly(t *testing.T) {
	type blocking struct {
		option holdfast.Option
		call   func(ctx context.Context, p *world.Process) error
	}
	lock := func(ctx context.Context, p *world.Process) error { return errOf(p.Mutex("slow").Lock(ctx)) }
	do := func(hook holdfast.DoOption) func(context.Context, *world.Process) error {
		return func(ctx context.Context, p *world.Process) error {
			return holdfast.Do(ctx, p.Mutex("slow"), nothing, hook)
		}
	}
	all := func(block <-chan struct{}) map[string]blocking {
		return map[string]blocking{
			"a name mapper":  {holdfast.WithNameMapper(slowFor("slow", block)), lock},
			"a metric group": {holdfast.WithMetricGroup(slowFor("slow", block)), lock},
			"a Monitor's": {nil, func(ctx context.Context, p *world.Process) error {
				return p.Monitor(ctx, holdfast.MonitorOptions{Threshold: time.Second, Every: time.Second, OnHeld: func(holdfast.HeldLong) { <-block }})
			}},
			"a hook of the grant": {nil, do(holdfast.OnAcquire(func(context.Context, holdfast.Handle) { <-block }))},
			"a hook of the exit":  {nil, do(holdfast.OnExit(func(context.Context, holdfast.Handle, error) { <-block }))},
		}
	}
	for what := range all(nil) {
		play(t, what, func(t *testing.T, w *world.World) {
			block, unblock := blockade()
			_, options := newTold()
			p := w.Process(append(options, all(block)[what].option)...)
			l := w.Lock(t.Context(), p.Mutex("kept", holdfast.Renewed(9*time.Second)))
			stuck := w.Try(func() (*holdfast.Lease, error) { return nil, all(block)[what].call(t.Context(), p) })
			w.At(time.Minute)
			if !stuck.Pending() {
				t.Errorf("it does not block: %v", stuck.Err)
			}
			w.Release(w.Lock(t.Context(), p.Mutex("other")), l)
			closeWithin(t, p, closeBound)
			unblock()
			if err := errOf(stuck.Result()); !errors.Is(err, holdfast.ErrClosed) && what != "a hook of the exit" {
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
		redistest.Is(t, "the waiter", errOf(waits.Result()), holdfast.ErrClosed)
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

func TestNothingSecretIsTold(t *testing.T) {
	t.Parallel()
	const right, wrong = "the-right-password", "the-wrong-password"
	s := redistest.Server(t, "--requirepass", right)
	with := func(password string) *redis.Client {
		return s.Client(t, func(o *redis.Options) { o.Password = password })
	}
	said := new(redistest.Log) // everything that the Clients say
	tell := func(what string, err error) { fmt.Fprintf(said, "%s: %v\n", what, err) }
	spans, options := newTold()
	options = append(options, holdfast.WithLogger(slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	a, b, stranger := clienttest.OpenClient(t, with(right), options...), clienttest.OpenClient(t, with(right), options...), clienttest.OpenClient(t, with(wrong), options...)
	short := func() context.Context { return redistest.Within(t, 300*time.Millisecond) }

	held, fair := clienttest.Grab(t, a.Mutex("told")), clienttest.Grab(t, a.FairMutex("told fair"))
	owners := []holdfast.Owner{held.Owner(), fair.Owner()}
	_, err := b.Mutex("told").Lock(short())
	tell("a wait in vain", err)
	nobody, err := holdfast.ParseOwner(strings.Repeat("0", 8) + held.Owner().String()[8:])
	must(t, err)
	_, err = b.Mutex("told").Attach(short(), nobody)
	tell("an owner that holds nothing", err)
	_, err = stranger.Mutex("told").Lock(short())
	tell("a wrong password", err)
	must(t, errOf(b.Mutex("told").ForceRelease(t.Context())))
	tell("an Extend of what is lost", held.Extend(short(), time.Minute))
	tell("a Release of what is lost", held.Release(short()))
	s.Kill()
	tell("a Release without a server", fair.Release(short()))
	_, err = b.Mutex("told").Lock(short())
	tell("a Lock without a server", err)
	for _, c := range []*holdfast.Client{a, b, stranger} {
		tell("Close", c.Close())
	}
	var metrics metricdata.ResourceMetrics
	must(t, spans.reader.Collect(context.Background(), &metrics))
	fmt.Fprintf(said, "%+v\n%+v\n", tracetest.SpanStubsFromReadOnlySpans(spans.spans.Ended()), metrics)

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
