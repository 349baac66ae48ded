// What spans and metrics say of each kind, and of the group of its name; and that all kinds share one wheel
// and one connection.

package holdfast_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
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
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/once"
)

// One Client holds locks of every kind and waits for all of them at once. It has one wheel, and one
// subscription connection to each master on which it subscribes. Before Redis 7 that is one master.
func TestEveryKindOnOneConnection(t *testing.T) {
	cluster := redistest.Cluster(t, 3, 0)
	var masters []*redis.Client
	for _, node := range cluster.Nodes() {
		masters = append(masters, node.Admin())
	}
	client := clienttest.OpenClient(t, cluster.Client(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var waits []func() error
	for i := range 8 { // so many names that each master has some
		waits = append(waits, holdEveryKind(t, ctx, client, fmt.Sprint("n", i))...)
	}
	done := make(chan error, len(waits))
	for _, wait := range waits {
		go func() { done <- wait() }()
	}
	sharded := redistest.HasShardedChannels(t)
	redistest.Eventually(t, 20*time.Second, "all wait, each master on one connection", func() error {
		channels, connections := 0, 0
		for _, master := range masters {
			subscribers, n := subscriptions(master.ClientList(t.Context()).Val())
			channels, connections = channels+n, connections+subscribers
			if subscribers > 1 {
				return fmt.Errorf("%d connections with subscriptions", subscribers)
			}
		}
		if connections != 1 && connections != len(masters) || (connections == 1) == sharded {
			return fmt.Errorf("subscriptions on %d masters", connections)
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
		must(t, err)
		world.WantErr(t, errOf(q.TryLock(t.Context())), holdfast.ErrBusy)
		waitInVain(t, lock)
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
		watch, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
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
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := c.Leader("orders:1").Run(ctx, func(ctx context.Context, _ *leader.Term) error {
				<-ctx.Done()
				return nil
			})
			if errors.Is(err, context.DeadlineExceeded) {
				return nil
			}
			return err
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
			p := w.Process(append(options, holdfast.WithMetricGroup(beforeColon))...)
			must(t, use(t, p.Client))
			w.At(10 * time.Second)
			var of []string
			for metric := range groupsOf(t, o.reader) {
				if strings.HasSuffix(metric, " "+kind) {
					of = append(of, metric)
				}
			}
			if len(of) == 0 {
				t.Errorf("nothing was recorded of that kind")
			}
			wantGroups(t, o.reader, "orders")
			w.Mini.FlushAll()
		})
	}
}

// Groups are of the program's names, which have no prefix of an environment.
func TestTheGroupIsOfTheNameAsTheProgramUsesIt(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		o, options := newTold()
		p := w.Process(append(options, holdfast.WithMetricGroup(beforeColon),
			holdfast.WithNameMapper(func(name string) string { return "staging:" + name }))...)
		w.Release(w.Lock(t.Context(), p.Mutex("orders:1")))
		wantGroups(t, o.reader, "orders", "holdfast.acquire.duration mutex")
	})
}

func TestAMetricGroupThatPanicsLosesNoGrant(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		o, options := newTold()
		p := w.Process(append(options, holdfast.WithMetricGroup(func(string) string { panic("a function of the user's") }))...)
		w.Release(w.Lock(t.Context(), p.MyLock))
		closeWithin(t, p, 0)
		wantGroups(t, o.reader, "other", "holdfast.acquire.duration mutex")
		w.WantFree()
	})
}

func TestMoreGroupsThanAClientTellsApart(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		o, options := newTold()
		p := w.Process(append(options, holdfast.WithMetricGroup(func(name string) string { return name }))...)
		for i := range 30 {
			w.Release(w.Lock(t.Context(), p.Mutex(fmt.Sprint("name ", i))))
		}
		if got := groupsOf(t, o.reader)["holdfast.acquire.duration mutex"]; len(got) != 21 || !slices.Contains(got, "other") {
			t.Errorf("%d groups: %q", len(got), got)
		}
	})
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
		select {
		case err := <-led:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("the work has returned, and the lead is kept")
		}
	})
}
