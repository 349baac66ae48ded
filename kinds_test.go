// This file uses every kind at once from one Client: what the kinds share, and what spans and
// metrics say of the kinds that are no Lockers.

package holdfast_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// One Client holds locks of every kind and waits for all of them at once. It has one wheel and one
// subscription connection, or one such connection to each master on which it subscribes.
func TestEveryKindOnOneConnection(t *testing.T) {
	t.Run("standalone", func(t *testing.T) {
		server := redistest.Server(t)
		everyKindWaits(t, server.Client(t), []*redis.Client{server.Admin()}, 2)
	})
	t.Run("sharded", func(t *testing.T) {
		cluster := redistest.Cluster(t, 3, 0)
		var masters []*redis.Client
		for _, node := range cluster.Nodes() {
			masters = append(masters, node.Admin())
		}
		everyKindWaits(t, cluster.Client(t), masters, 8) // so many names that each master has some
	})
}

func everyKindWaits(t *testing.T, rdb redis.UniversalClient, masters []*redis.Client, names int) {
	client := clienttest.OpenClient(t, rdb)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var waits []func() error
	for i := range names {
		waits = append(waits, holdEveryKind(t, ctx, client, fmt.Sprint("n", i))...)
	}
	done := make(chan error, len(waits))
	for _, wait := range waits {
		go func() { done <- wait() }()
	}
	redistest.Eventually(t, 20*time.Second, "all wait, each master on one connection", func() error {
		channels := 0
		for _, master := range masters {
			subscribers, n := subscriptions(master.ClientList(t.Context()).Val())
			if channels += n; subscribers != 1 {
				return fmt.Errorf("%d connections with subscriptions", subscribers)
			}
		}
		if channels < len(waits) {
			return fmt.Errorf("%d subscriptions for %d waiters", channels, len(waits))
		}
		return nil
	})
	if wheels := goroutinesIn("renewal.(*Scheduler).run"); wheels != 1 {
		t.Errorf("%d wheels", wheels)
	}
	cancel()
	for range waits {
		world.WantErr(t, <-done, context.Canceled)
	}
}

// holdEveryKind holds one lock of each kind, and returns a function for each kind that waits for
// it.
func holdEveryKind(t *testing.T, ctx context.Context, c *holdfast.Client, name string) []func() error {
	t.Helper()
	permits, counting, latch := c.PermitSemaphore(name+":p"), c.Semaphore(name+":s"), c.Latch(name+":l")
	for what, set := range map[string]func() (bool, error){
		"permits":   func() (bool, error) { return permits.TrySetPermits(ctx, 1) },
		"semaphore": func() (bool, error) { return counting.TrySetPermits(ctx, 0) },
		"latch":     func() (bool, error) { return latch.TrySetCount(ctx, 1) },
	} {
		if did, err := set(); err != nil || !did {
			t.Fatalf("%s: %v, %v", what, did, err)
		}
	}
	rw := c.RWMutex(name + ":rw")
	waits := []func() error{
		func() error { return counting.Acquire(ctx, 1) },
		func() error { return latch.Wait(ctx) },
	}
	// The first of each pair is held and the second waits, also for the other side of a read/write
	// lock.
	for _, pair := range [][2]holdfast.Locker{
		{c.Mutex(name + ":m"), c.Mutex(name + ":m")},
		{c.FairMutex(name + ":f"), c.FairMutex(name + ":f")},
		{c.Striped(name, 4).For("key"), c.Striped(name, 4).For("key")},
		{rw.RLocker(), rw},
		{c.RWMutex(name + ":w"), c.RWMutex(name + ":w").RLocker()},
		{permits.Locker(1), permits.Locker(1)},
	} {
		clienttest.Grab(t, pair[0]) // held until the Client closes
		waits = append(waits, func() error {
			_, err := pair[1].Lock(ctx)
			return err
		})
	}
	return waits
}

var subscriptionCount = regexp.MustCompile(`\b(?:sub|ssub)=([0-9]+)`)

// subscriptions returns how many connections in a CLIENT LIST have subscriptions, and how many
// subscriptions they have together.
func subscriptions(list string) (connections, channels int) {
	for line := range strings.Lines(list) {
		n := 0
		for _, match := range subscriptionCount.FindAllStringSubmatch(line, -1) {
			var some int
			fmt.Sscan(match[1], &some)
			n += some
		}
		if n > 0 {
			connections++
		}
		channels += n
	}
	return connections, channels
}

// goroutinesIn returns how many goroutines run that function.
func goroutinesIn(function string) int {
	var stacks bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 2)
	return strings.Count(stacks.String(), function+"(")
}

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

// counted returns the counts that a metric has for a kind, by outcome.
func (o told) counted(t *testing.T, metric, kind string) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := o.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int64)
	add := func(attributes attribute.Set, n int64) {
		if v, _ := attributes.Value("holdfast.kind"); v.AsString() == kind {
			outcome, _ := attributes.Value("holdfast.outcome")
			counts[outcome.AsString()] += n
		}
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != metric {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, int64(p.Count))
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, p.Value)
				}
			}
		}
	}
	return counts
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
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	world.WantErr(t, wait(ctx), context.DeadlineExceeded, holdfast.ErrBusy)
	cancel()
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	world.WantErr(t, wait(ctx), context.Canceled, holdfast.ErrBusy)
}

func TestTelemetry_Semaphore(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		o, options := newTold()
		s := w.Process(options...).Semaphore(world.Name)
		if _, err := s.TrySetPermits(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		acquire := func(ctx context.Context) error { return s.Acquire(ctx, 1) }
		if err := acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		world.WantErr(t, s.TryAcquire(t.Context(), 1), holdfast.ErrBusy)
		waitInVain(t, acquire)
		if err := s.Release(t.Context(), 1); err != nil {
			t.Error(err)
		}
		world.WantErr(t, s.Acquire(t.Context(), -1), holdfast.ErrBadArgument) // before a span begins
		synctest.Wait()
		o.wantTold(t, "semaphore", "acquire acquired", "acquire busy", "acquire timeout", "acquire cancelled", "release released")
		w.Mini.FlushAll() // a semaphore stays in Redis
	})
}

func TestTelemetry_Latch(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		o, options := newTold()
		l := w.Process(options...).Latch(world.Name)
		if _, err := l.TrySetCount(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		waitInVain(t, l.Wait)
		opened := make(chan error, 1)
		go func() { opened <- l.Wait(t.Context()) }()
		synctest.Wait()
		if _, err := l.CountDown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-opened; err != nil {
			t.Error(err)
		}
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
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- rival.Run(ctx, func(ctx context.Context, _ *holdfast.Term) error {
				<-ctx.Done()
				return nil
			})
		}()
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
		cancel()
		world.WantErr(t, <-done, context.Canceled)
		if err := lead(t.Context()); err != nil {
			t.Error(err)
		}
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
		for i := range 3 {
			server := redistest.Mini(t).Proxy()
			at := func(o *redis.Options) { o.Addr = fmt.Sprintf("server%d:6379", i) }
			ours = append(ours, clienttest.OpenClient(t, server.Client(t, at), options...))
			theirs = append(theirs, clienttest.OpenClient(t, server.Client(t, at)))
		}
		q, rival := holdfast.NewQuorum(world.Name, ours), holdfast.NewQuorum(world.Name, theirs)
		lock := func(ctx context.Context) error {
			_, err := q.Lock(ctx)
			return err
		}
		held, err := rival.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = q.TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		waitInVain(t, lock)
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}

		outer, err := q.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		inner, err := q.Lock(outer.Context(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
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
		for _, c := range append(ours, theirs...) {
			c.Close()
		}
	})
}
