// Inspect, InspectAll and the Monitor, for each kind and for what is foreign; the life of tokens, by
// which they see since when a lock is held; and identities: who holds what, and who waits for it.

package holdfast_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/shards"
	"github.com/holdfast-go/holdfast/slots"
)

// onlook runs scene with a Client of an embedded server, on virtual time.
func onlook(t *testing.T, scene func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		mini := redistest.Mini(t)
		c := clienttest.OpenClient(t, mini.Client())
		scene(t, mini, mini.Client(), c)
	})
}

// inspected inspects a name or fails the test.
func inspected(t *testing.T, c *holdfast.Client, name string) holdfast.Inspection {
	t.Helper()
	i, err := c.Inspect(t.Context(), name)
	must(t, err)
	world.Equal(t, i.Name, name, "it is about %q, want %q", name)
	return i
}

// wantKind fails the test unless the inspection is of that kind and has that many holders.
func wantKind(t *testing.T, i holdfast.Inspection, kind holdfast.Kind, holders int) {
	t.Helper()
	if i.Kind != kind || len(i.Holders) != holders {
		t.Fatalf("%v: %s with %d holders, want %s with %d", i, i.Kind, len(i.Holders), kind, holders)
	}
}

func TestInspectMutex(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, other := w.Process(), w.Process()
		wantKind(t, inspected(t, other.Client, world.Name), holdfast.KindFree, 0)

		granted := time.Now()
		l := w.Lock(t.Context(), p.MyLock)
		w.At(5 * time.Second)
		i := inspected(t, other.Client, world.Name)
		wantKind(t, i, holdfast.KindMutex, 1)
		if h := i.Holders[0]; h.Owner != l.Owner() || h.Count != 1 || h.Write || h.Remaining != i.Remaining {
			t.Errorf("held by %+v, want %v", h, l.Owner())
		}
		if age := i.At.Sub(i.HeldSince); age != 5*time.Second || !i.HeldSince.Equal(granted) {
			t.Errorf("held for %v since %v, want 5s", age, i.HeldSince)
		}
		world.Within(t, "remaining", i.Remaining, 20*time.Second, 30*time.Second)
		world.Equal(t, i.Waiters, 0, "%d waiters")

		inner := w.Lock(l.Context(t.Context()), p.MyLock)
		i = inspected(t, other.Client, world.Name)
		if i.Holders[0].Count != 2 || !i.HeldSince.Equal(granted) {
			t.Errorf("nested: %v", i)
		}
		w.At(40 * time.Second) // the lease is renewed meanwhile
		w.Release(inner)
		if i = inspected(t, other.Client, world.Name); !i.HeldSince.Equal(granted) {
			t.Errorf("renewed: held since %v", i.HeldSince)
		}
		owner, err := l.Detach(t.Context())
		must(t, err)
		attached, err := other.MyLock.Attach(t.Context(), owner)
		must(t, err)
		i = inspected(t, p.Client, world.Name)
		if wantKind(t, i, holdfast.KindMutex, 1); i.Holders[0].Owner != attached.Owner() || !i.HeldSince.Equal(granted) {
			t.Errorf("attached by another process: %v since %v", i, i.HeldSince)
		}
		w.Release(attached)
		wantKind(t, inspected(t, other.Client, world.Name), holdfast.KindFree, 0)

		handed := w.Lock(t.Context(), p.FairMutex(world.Name))
		w.RDB.HSet(t.Context(), world.Name, handed.Owner().String(), 0) // as a hand-over to a waiter leaves it
		i = inspected(t, other.Client, world.Name)
		if wantKind(t, i, holdfast.KindMutex, 1); i.Holders[0].Count != 1 || i.HeldSince.IsZero() {
			t.Errorf("handed over: %v since %v", i, i.HeldSince)
		}
		w.Release(handed)
	})
}

func TestInspectRWMutex(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		reads, writes := known(t, mini, "reads"), known(t, mini, "writes")
		m := c.RWMutex("x", holdfast.Renewed(9*time.Second))
		writer := clienttest.Grab(t, m)
		time.Sleep(2 * time.Second)
		i := inspected(t, c, "x")
		wantKind(t, i, holdfast.KindRWLock, 1)
		if h := i.Holders[0]; h.Owner != writer.Owner() || !h.Write || h.Count != 1 || i.At.Sub(i.HeldSince) != 2*time.Second || i.Waiters != 0 {
			t.Errorf("%v, %d waiting", i, i.Waiters)
		}

		stop := background(t, func(ctx context.Context) { _, _ = reads.RWMutex("x").RLock(ctx) })
		time.Sleep(time.Second)
		waiting := make(chan *holdfast.Lease)
		go func() {
			l, _ := writes.RWMutex("x").Lock(t.Context())
			waiting <- l
		}()
		time.Sleep(time.Second)
		i = inspected(t, c, "x")
		if wantKind(t, i, holdfast.KindRWLock, 1); len(i.Queue) != 2 || i.Waiters != 2 {
			t.Fatalf("%v: %v", i, i.Queue)
		}
		first, next := i.Queue[0], i.Queue[1]
		if first.Who != "reads" || first.Write || next.Who != "writes" || !next.Write || i.At.Sub(first.Since).Round(10*time.Millisecond) != 2*time.Second {
			t.Errorf("%v since %v", i.Queue, first.Since)
		}
		stop()

		reader, err := m.RLock(writer.Context(t.Context())) // a downgrade
		must(t, err)
		time.Sleep(time.Second)
		i = inspected(t, c, "x")
		wantKind(t, i, holdfast.KindRWLock, 2)
		if i.Waiters != 1 || i.At.Sub(i.HeldSince) != 5*time.Second {
			t.Errorf("%v", i)
		}
		clienttest.GiveBack(t, writer)
		i = inspected(t, c, "x")
		wantKind(t, i, holdfast.KindRWLock, 1)
		if h := i.Holders[0]; h.Owner != reader.Owner() || h.Write || !i.HeldSince.IsZero() {
			t.Errorf("%v since %v", i, i.HeldSince)
		}
		world.Within(t, "remaining", i.Holders[0].Remaining, 5*time.Second, 9*time.Second)
		clienttest.GiveBack(t, reader)
		second := <-waiting
		i = inspected(t, c, "x")
		if wantKind(t, i, holdfast.KindRWLock, 1); i.Holders[0].Owner != second.Owner() || i.Waiters > 0 {
			t.Errorf("%v", i)
		}
		clienttest.GiveBack(t, second)
		wantKind(t, inspected(t, c, "x"), holdfast.KindFree, 0)
	})
}

// A reader with an ended lease does not hold, though other readers keep its field in Redis.
func TestInspectLeavesOutZombies(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		lives, err := c.RWMutex("x", holdfast.Renewed(time.Minute)).RLock(t.Context())
		must(t, err)
		died := holdfast.New(mini.Client())
		must(t, errOf(died.RWMutex("x", holdfast.Fixed(5*time.Second)).RLock(t.Context())))
		died.Close()
		wantKind(t, inspected(t, c, "x"), holdfast.KindRWLock, 2)
		time.Sleep(6 * time.Second)
		i := inspected(t, c, "x")
		if wantKind(t, i, holdfast.KindRWLock, 1); i.Holders[0].Owner != lives.Owner() {
			t.Errorf("%v", i)
		}
	})
}

func TestInspectCounts(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		ctx := t.Context()
		must := func(_ any, err error) {
			t.Helper()
			must(t, err)
		}
		must(c.Semaphore("semaphore").TrySetPermits(ctx, 7))
		i := inspected(t, c, "semaphore")
		if wantKind(t, i, holdfast.KindSemaphore, 0); i.Value != 7 || i.All != 7 || i.Remaining != holdfast.NoExpiry || i.Waiters != -1 {
			t.Errorf("%v", i)
		}

		permits := c.PermitSemaphore("permits", holdfast.Fixed(10*time.Second))
		must(permits.TrySetPermits(ctx, 5))
		wantKind(t, inspected(t, c, "permits"), holdfast.KindCount, 0)
		l, err := permits.Acquire(ctx, 2)
		must(l, err)
		i = inspected(t, c, "permits")
		if wantKind(t, i, holdfast.KindPermits, 2); i.Value != 3 || i.Taken != 2 || i.Remaining != 10*time.Second {
			t.Errorf("%v: %v left", i, i.Remaining)
		}
		ids := permits.IDs(l)
		for _, h := range i.Holders {
			if !slices.Contains(ids, h.Permit) || h.Count != 1 || h.Remaining != 10*time.Second || h.Owner != (holdfast.Owner{}) {
				t.Errorf("holder %+v, want one of %q", h, ids)
			}
			text, err := json.Marshal(i)
			must(text, err)
			if told := h.String() + i.String() + string(text); strings.Contains(told, h.Permit) {
				t.Errorf("%q tells the id of a permit", told)
			}
		}
		time.Sleep(11 * time.Second) // the leases are over, and the permits are not taken back yet
		i = inspected(t, c, "permits")
		if wantKind(t, i, holdfast.KindPermits, 0); i.Value != 5 || i.Taken != 0 || i.Remaining != 0 {
			t.Errorf("%v: %v left", i, i.Remaining)
		}

		latch := c.Latch("latch")
		must(latch.TrySetCount(ctx, 2))
		must(latch.CountDown(ctx))
		i = inspected(t, c, "latch")
		if wantKind(t, i, holdfast.KindLatch, 0); i.Value != 1 {
			t.Errorf("%v", i)
		}
		must(latch.CountDown(ctx))
		wantKind(t, inspected(t, c, "latch"), holdfast.KindFree, 0)
	})
}

// javaHolder returns a holder as Redisson makes it.
func javaHolder() string { return uuid.NewString() + ":61" }

// A token that another holder left says nothing about how long a Java thread has held the lock.
func TestInspectJava(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		l := clienttest.Grab(t, c.Mutex("x"))
		clienttest.GiveBack(t, l)
		holder := javaHolder()
		rdb.HSet(t.Context(), "x", holder, 3)
		rdb.PExpire(t.Context(), "x", 30*time.Second)
		i := inspected(t, c, "x")
		wantKind(t, i, holdfast.KindMutex, 1)
		if h := i.Holders[0]; h.Owner.String() != holder || h.Count != 3 || i.Remaining != 30*time.Second {
			t.Errorf("%v", i)
		}
		if !i.HeldSince.IsZero() {
			t.Errorf("held since %v, want not known", i.HeldSince)
		}
		rdb.Persist(t.Context(), "x")
		if i := inspected(t, c, "x"); i.Remaining != holdfast.NoExpiry {
			t.Errorf("%v left", i.Remaining)
		}

		rdb.HSet(t.Context(), "rw", "mode", "write", holder+":write", 1)
		i = inspected(t, c, "rw")
		if wantKind(t, i, holdfast.KindRWLock, 1); !i.Holders[0].Write || !i.HeldSince.IsZero() {
			t.Errorf("%v since %v", i, i.HeldSince)
		}
		rdb.HSet(t.Context(), "r", "mode", "read", holder, 2)
		rdb.Set(t.Context(), "{r}:"+holder+":rwlock_timeout:2", 1, 4*time.Second)
		i = inspected(t, c, "r")
		if wantKind(t, i, holdfast.KindRWLock, 1); i.Holders[0].Remaining != 4*time.Second {
			t.Errorf("%v", i)
		}
	})
}

// Inspect tells foreign keys apart where it can, and leaves them as they are.
func TestInspectWhatIsForeign(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		// Keys that other programs may keep, a counter n and a lock l.
		ctx, holder := t.Context(), javaHolder()
		p := rdb.Pipeline()
		p.RPush(ctx, "list", 1)
		p.SAdd(ctx, "set", 1)
		p.ZAdd(ctx, "zset", redis.Z{Score: 1, Member: "a"})
		p.Set(ctx, "text", "abc", 0)
		p.Set(ctx, "float", "1.5", 0)
		p.Set(ctx, "huge", "99999999999999999999", 0)
		p.Set(ctx, "number-and-more", "1 ", 0)
		p.HSet(ctx, "hash", "field", "value")
		p.HSet(ctx, "mixed", holder, 1, "other", 1)
		p.HSet(ctx, "mode", "mode", "read")
		p.HSet(ctx, "settings", "mode", "read", "colour", "red")
		p.HSet(ctx, "count", holder, "many")
		for k := range 2000 {
			p.HSet(ctx, "large", fmt.Sprint("field", k), k)
		}
		p.Set(ctx, "n", -3, 0)
		p.Set(ctx, "{n}:timeout", "text", 0)
		p.HSet(ctx, "holdfast_latch:{n}", "a", 1)
		p.HSet(ctx, "l", holder, 1)
		p.RPush(ctx, "redisson_lock_token:{l}", 1)
		p.Set(ctx, "{r}:"+holder+":rwlock_timeout:1", 1, 0) // an expiry would not be the same to the ms
		p.Set(ctx, "holdfast_other", 1, 0)
		must(t, errOf(p.Exec(ctx)))
		before := redistest.Snapshot(t, rdb)
		for _, name := range []string{"list", "set", "zset", "text", "float", "huge", "number-and-more", "hash", "large", "mixed", "mode", "settings", "count"} {
			wantKind(t, inspected(t, c, name), holdfast.KindUnknown, 0)
		}
		// The keys beside a name may be foreign too.
		if i := inspected(t, c, "n"); i.Kind != holdfast.KindCount || i.Value != -3 {
			t.Errorf("%v", i)
		}
		if i := inspected(t, c, "l"); i.Kind != holdfast.KindMutex || !i.HeldSince.IsZero() {
			t.Errorf("%v", i)
		}
		if all := allOf(t, c, ""); len(all) != 2 || all["l"].Kind != holdfast.KindMutex || all["n"].Kind != holdfast.KindCount {
			t.Errorf("found %v, want l and n", all)
		}
		world.Equal(t, redistest.Snapshot(t, rdb), before, "after\n%s\nbefore\n%s", before)
	})
}

func TestInspectAndMonitorRefuse(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		often := holdfast.MonitorOptions{Threshold: time.Second}
		for _, name := range []string{"", "redisson_lock_token:{a}", "holdfast_x"} {
			world.WantErr(t, errOf(c.Inspect(t.Context(), name)), holdfast.ErrBadArgument)
		}
		for _, options := range []holdfast.MonitorOptions{{}, {Threshold: -1}, {Threshold: 1, Every: -1}} {
			world.WantErr(t, c.Monitor(t.Context(), options), holdfast.ErrBadArgument)
		}
		world.WantErr(t, errOf(holdfast.New(nil).Inspect(t.Context(), "x")), holdfast.ErrBadArgument)
		world.WantErr(t, holdfast.New(nil).Monitor(t.Context(), often), holdfast.ErrBadArgument)

		world.WantErr(t, c.Monitor(redistest.Within(t, time.Minute), often), context.DeadlineExceeded)
		time.AfterFunc(15*time.Second, func() { c.Close() })
		world.WantErr(t, c.Monitor(t.Context(), often), holdfast.ErrClosed)
		world.WantErr(t, errOf(c.Inspect(t.Context(), "x")), holdfast.ErrClosed)
		for _, err := range c.InspectAll(t.Context(), "") {
			world.WantErr(t, err, holdfast.ErrClosed)
		}
	})
}

func TestInspectDenied(t *testing.T) {
	server := redistest.Server(t)
	ctx := t.Context()
	server.Admin().HSet(ctx, "mine:x", javaHolder(), 1)
	server.Admin().HSet(ctx, "other", javaHolder(), 1)
	as := func(user string, rules ...string) *holdfast.Client {
		return clienttest.OpenClient(t, server.Client(t, clienttest.User(t, server, user, rules...)))
	}

	narrow := as("narrow", "~mine:*", "+@all")
	wantKind(t, inspected(t, narrow, "mine:x"), holdfast.KindMutex, 1) // without the keys beside it
	world.WantErr(t, errOf(narrow.Inspect(ctx, "other")), holdfast.ErrDenied)
	var names []string
	for i, err := range narrow.InspectAll(ctx, "") {
		names = append(names, i.Name)
		if (i.Name == "other") != errors.Is(err, holdfast.ErrDenied) {
			t.Errorf("%q: %v", i.Name, err)
		}
	}
	if len(names) != 2 {
		t.Errorf("found %q", names)
	}

	noscan := as("noscan", "~*", "+@all", "-scan")
	for _, err := range noscan.InspectAll(ctx, "") {
		world.WantErr(t, err, holdfast.ErrDenied)
	}
	world.WantErr(t, noscan.Monitor(ctx, holdfast.MonitorOptions{Threshold: time.Second}), holdfast.ErrDenied)
}

// Inspect tells all permits that are taken, however many calls that takes, and no permit with an ended lease.
func TestInspectManyPermits(t *testing.T) {
	t.Parallel()
	rdb := redistest.Server(t).Client(t)
	c := clienttest.OpenClient(t, rdb)
	const taken, over = 3000, 500
	var ids []redis.Z
	for i := range taken + over {
		ends := time.Now().Add(time.Hour)
		if i >= taken {
			ends = time.Now().Add(-time.Minute)
		}
		ids = append(ids, redis.Z{Score: float64(ends.UnixMilli()), Member: fmt.Sprintf("%016d", i)})
	}
	must(t, errors.Join(rdb.ZAdd(t.Context(), "{many}:timeout", ids...).Err(), rdb.Set(t.Context(), "many", 7, 0).Err()))
	i := inspected(t, c, "many")
	if wantKind(t, i, holdfast.KindPermits, taken); i.Taken != taken || i.Value != 7+over {
		t.Errorf("%d free, %d taken, want %d and %d", i.Value, i.Taken, 7+over, taken)
	}
	told := make(map[string]bool)
	for _, h := range i.Holders {
		told[h.Permit] = true
	}
	world.Equal(t, len(told), taken, "%d different permits, want %d", taken)
}

// background runs f until the test ends, which waits for it.
func background(t *testing.T, f func(ctx context.Context)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	return func() { cancel(); <-done }
}

// allOf returns the inspections of all names that match the pattern, by name.
func allOf(t *testing.T, c *holdfast.Client, pattern string) map[string]holdfast.Inspection {
	t.Helper()
	found := make(map[string]holdfast.Inspection)
	for i, err := range c.InspectAll(t.Context(), pattern) {
		redistest.Check(t, err)
		if _, again := found[i.Name]; again {
			t.Errorf("%q came twice", i.Name)
		}
		found[i.Name] = i
	}
	return found
}

func TestInspectLeader(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		campaign := func(options ...leader.Option) func() {
			return background(t, func(ctx context.Context) {
				_ = c.Leader("x", options...).Run(ctx, func(ctx context.Context, _ *leader.Term) error { <-ctx.Done(); return nil })
			})
		}
		defer campaign(leader.Identity("pod-1"))()
		time.Sleep(time.Second)
		begun := time.Now().Add(-time.Second)
		defer campaign(leader.Identity("pod-2"))()
		time.Sleep(time.Second)
		defer campaign(leader.Identity("pod-3"), leader.Priority(5))()
		time.Sleep(time.Second)
		i := inspected(t, c, "x")
		wantKind(t, i, holdfast.KindLeader, 1)
		if h := i.Holders[0]; h.Who != "pod-1" || i.HeldSince.Sub(begun).Abs() > time.Millisecond {
			t.Errorf("led by %+v since %v, want %v", h, i.HeldSince, begun)
		}
		if i.Waiters != 2 || len(i.Queue) != 2 || i.Queue[0].Who != "pod-3" || i.Queue[1].Who != "pod-2" {
			t.Fatalf("waiting: %v", i.Queue)
		}
		for n, waited := range []time.Duration{time.Second, 2 * time.Second} {
			if got := i.At.Sub(i.Queue[n].Since); (got - waited).Abs() > time.Millisecond {
				t.Errorf("%v waits for %v, want %v", i.Queue[n], got, waited)
			}
		}
		if all := allOf(t, c, "*"); len(all) != 1 || all["x"].Kind != holdfast.KindLeader {
			t.Errorf("%v", all)
		}
		rdb.Del(t.Context(), "holdfast_leader:{x}", "holdfast_leader_names:{x}")
		wantKind(t, inspected(t, c, "x"), holdfast.KindMutex, 1)
	})
}

// A record that a leader before this one has left does not name this one.
func TestInspectALeaderWhoseRecordIsOld(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		l := clienttest.Grab(t, c.Mutex("x"))
		rdb.HSet(t.Context(), "holdfast_leader:{x}", "owner", javaHolder(), "since", "1", "identity", "gone")
		if i := inspected(t, c, "x"); i.Kind != holdfast.KindMutex || i.Holders[0].Who != "" || i.HeldSince.IsZero() {
			t.Errorf("%v", i)
		}
		clienttest.GiveBack(t, l)
	})
}

func TestInspectOnce(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		o := c.Once("charge", once.Keep(time.Hour), once.KeepErrors(time.Minute))
		until := make(chan struct{})
		stop := background(t, func(ctx context.Context) {
			_, _ = once.Value(ctx, o, "a:b", func(context.Context) (string, error) { <-until; return "a secret", nil })
		})
		time.Sleep(3 * time.Second)
		i := inspected(t, c, "charge:a%3Ab")
		if wantKind(t, i, holdfast.KindOnce, 1); i.State != "working" || i.At.Sub(i.HeldSince) != 3*time.Second || i.Remaining <= 0 {
			t.Errorf("%v", i)
		}
		for _, pattern := range []string{"", "charge:*", "*b", "charge:a?3Ab"} {
			if all := allOf(t, c, pattern); len(all) != 1 || all["charge:a%3Ab"].State != "working" {
				t.Errorf("%q: %v", pattern, all)
			}
		}
		if all := allOf(t, c, "other*"); len(all) != 0 {
			t.Errorf("%v", all)
		}
		close(until)
		stop()
		_ = once.Do(t.Context(), o, "fails", func(context.Context) error { return errors.New("refused") })
		for key, state := range map[string]string{"charge:a%3Ab": "done", "charge:fails": "failed"} {
			i := inspected(t, c, key)
			if wantKind(t, i, holdfast.KindOnce, 0); i.State != state || strings.Contains(i.String(), "secret") || i.Remaining <= 0 {
				t.Errorf("%v, want %s", i, state)
			}
		}
		if all := allOf(t, c, ""); len(all) != 0 {
			t.Errorf("what is done: %v", all)
		}
	})
}

func TestInspectBarrier(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		wait := func(client *holdfast.Client) func() {
			return background(t, func(ctx context.Context) { _, _ = client.Barrier("{b}x", 3).Await(ctx) })
		}
		a, b := known(t, mini, "pod-1"), known(t, mini, "pod-2")
		defer wait(a)()
		time.Sleep(time.Second)
		stop := wait(b)
		time.Sleep(time.Second)
		i := inspected(t, c, "{b}x")
		wantKind(t, i, holdfast.KindBarrier, 0)
		if i.State != "open" || i.Value != 2 || i.All != 3 || i.Waiters != 2 || len(i.Queue) != 2 || i.Queue[0].Who != "pod-1" || i.Queue[1].Who != "pod-2" {
			t.Errorf("%v: %v", i, i.Queue)
		}
		if all := allOf(t, c, "{b}*"); len(all) != 1 || all["{b}x"].Value != 2 {
			t.Errorf("%v", all)
		}
		stop()
		time.Sleep(time.Second)
		i = inspected(t, c, "{b}x")
		if wantKind(t, i, holdfast.KindBarrier, 0); i.State != "broken" || i.Waiters != 0 || len(i.Queue) != 0 {
			t.Errorf("%v", i)
		}
		if all := allOf(t, c, ""); len(all) != 0 {
			t.Errorf("what is over: %v", all)
		}
	})
}

func TestInspectShards(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		done := make(chan struct{})
		work := func(ctx context.Context, _ *shards.Shard) error { <-ctx.Done(); return nil }
		for _, pod := range []string{"pod-1", "pod-2"} {
			go func() { _ = c.Shards("parts", 5, shards.Identity(pod)).Run(ctx, work); done <- struct{}{} }()
			time.Sleep(5 * time.Second)
		}
		time.Sleep(10 * time.Second)
		i := inspected(t, c, "parts")
		if wantKind(t, i, holdfast.KindShards, 2); i.Value != 0 || i.All != 5 || i.Taken != 5 {
			t.Errorf("%v", i)
		}
		has := map[string]string{}
		for _, h := range i.Holders {
			has[h.Who] = fmt.Sprint(h.Count, ": ", h.Shards)
		}
		if want := map[string]string{"pod-1": "3: 0-2", "pod-2": "2: 3-4"}; !maps.Equal(has, want) {
			t.Errorf("%v, want %v", has, want)
		}
		if all := allOf(t, c, "p*"); len(all) != 1 || all["parts"].All != 5 {
			t.Errorf("%v", all)
		}
		stop()
		<-done
		<-done
		wantKind(t, inspected(t, c, "parts"), holdfast.KindFree, 0)
	})
}

func TestInspectLimiter(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		limit := c.Limiter("api", limiter.Rate(10, time.Second), limiter.Burst(5))
		for _, key := range []string{"a", "b:c"} {
			if d, err := limit.For(key).Allow(t.Context(), 3); !d.Allowed {
				t.Fatal(err)
			}
		}
		i := inspected(t, c, "api:b%3Ac")
		if wantKind(t, i, holdfast.KindLimiter, 0); i.Value != 2 || i.All != 5 || i.Remaining != 300*time.Millisecond {
			t.Errorf("%v", i)
		}
		if all := allOf(t, c, ""); len(all) != 0 {
			t.Errorf("of each something can be taken: %v", all)
		}
		for range 2 {
			must(t, errOf(limit.For("a").Reserve(t.Context(), 4)))
		}
		if all := allOf(t, c, "api*"); len(all) != 1 || all["api:a"].Value != -6 {
			t.Errorf("%v", all)
		}
		time.Sleep(2 * time.Second)
		wantKind(t, inspected(t, c, "api:a"), holdfast.KindFree, 0)
	})
}

// A long queue is shown by its first hundred. Those whose places have lapsed are not in it.
func TestInspectShowsTheFirstHundredInTheQueue(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		l := clienttest.Grab(t, c.Mutex("x"))
		now := time.Now()
		for n := range 150 {
			owner := redis.Z{Score: float64(now.UnixMicro() + int64(n) + 1), Member: javaHolder()}
			rdb.ZAdd(t.Context(), "holdfast_lock_queue:{x}", owner)
			if n%10 != 0 {
				rdb.ZAdd(t.Context(), "holdfast_lock_alive:{x}", redis.Z{Score: float64(now.Add(5 * time.Second).UnixMilli()), Member: owner.Member})
			}
		}
		i := inspected(t, c, "x")
		if i.Waiters != 135 || len(i.Queue) != 90 {
			t.Errorf("%d waiters, %d of them known", i.Waiters, len(i.Queue))
		}
		if !slices.IsSortedFunc(i.Queue, func(a, b holdfast.Waiter) int { return a.Since.Compare(b.Since) }) {
			t.Error("they are not in order")
		}
		rdb.Del(t.Context(), "holdfast_lock_queue:{x}", "holdfast_lock_alive:{x}")
		clienttest.GiveBack(t, l)
	})
}

// A scan that finds no server says so as every other call does.
func TestInspectAll_OutOfReach(t *testing.T) {
	for what, fail := range map[string]func(*redistest.FaultProxy){
		"refused": func(p *redistest.FaultProxy) { p.Refuse(true) },
		"closed":  func(p *redistest.FaultProxy) { p.Receive(redistest.Slam) },
	} {
		unreachable(t, func(t *testing.T, c *holdfast.Client, _ *redistest.MiniServer, proxy *redistest.FaultProxy) {
			fail(proxy)
			for _, err := range c.InspectAll(t.Context(), "") {
				redistest.Is(t, what, err, holdfast.ErrUnavailable)
			}
		})
	}
}

// In a cluster thousands of locks stand. Meanwhile other locks come and go, and some foreign keys lie about.
func TestInspectAll(t *testing.T) {
	t.Parallel()
	const thousands = 3000
	set := redistest.Cluster(t, 3, 0)
	rdb, ctx := set.Client(t), clienttest.Generous(t)
	c := clienttest.OpenClient(t, set.Client(t))
	p := rdb.Pipeline()
	for k := range thousands {
		p.HSet(ctx, fmt.Sprint("standing:", k), javaHolder(), 1)
		p.Set(ctx, fmt.Sprint("text:", k), "text", 0)
	}
	must(t, errOf(p.Exec(ctx)))
	coming, stop := context.WithCancel(ctx)
	var traffic sync.WaitGroup
	for k := range 8 {
		traffic.Go(func() { // makes keys come, go, and change their type
			for n := 0; coming.Err() == nil; n++ {
				name := fmt.Sprintf("passing:%d:%d", k, n%50)
				rdb.HSet(coming, name, javaHolder(), 1)
				rdb.PExpire(coming, name, time.Minute)
				rdb.Set(coming, name, n, 0)
				rdb.Del(coming, name)
				rdb.RPush(coming, name, 1)
				rdb.Del(coming, name)
			}
		})
	}
	defer traffic.Wait()
	defer stop()
	for range 3 {
		found := make(map[string]int)
		for i, err := range c.InspectAll(ctx, "") {
			must(t, err)
			if found[i.Name]++; i.Kind != holdfast.KindMutex && i.Kind != holdfast.KindCount || found[i.Name] > 1 {
				t.Errorf("found %v, %d times", i, found[i.Name])
			}
		}
		for k := range thousands {
			if found[fmt.Sprint("standing:", k)] == 0 {
				t.Fatalf("standing:%d was not found", k)
			}
		}
		if found["text:1"] != 0 {
			t.Error("a text is found")
		}
	}

	for range c.InspectAll(ctx, "") {
		break // nothing goes on after the break
	}
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	n := 0
	for _, err := range c.InspectAll(cancelled, "") {
		if n++; n == 1 {
			cancel()
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("after its context's end: %v", err)
		}
	}
	world.Equal(t, n, 2, "%d steps, want one and the error")
}

// While a slot moves, Inspect tells a name wherever the name stands. It leaves out the keys beside
// the name if they are on another server.
func TestInspectWhileASlotMoves(t *testing.T) {
	t.Parallel()
	set := redistest.Cluster(t, 3, 0)
	c := clienttest.OpenClient(t, set.Client(t))
	l := clienttest.Grab(t, c.Mutex("x"))
	move := set.OpenSlot("x")
	look := func(where string) holdfast.Inspection {
		t.Helper()
		i := inspected(t, c, "x")
		if wantKind(t, i, holdfast.KindMutex, 1); i.Holders[0].Owner != l.Owner() {
			t.Errorf("%s: %v", where, i)
		}
		return i
	}
	look("before its keys move")
	move.MoveKeys("redisson_lock_token:{x}")
	look("without its token")
	move.MoveKeys("x")
	look("on the new server")
	move.Finish()
	if i := look("after the move"); i.HeldSince.IsZero() {
		t.Error("after the move it is not known since when it is held")
	}
	must(t, l.Release(clienttest.Generous(t)))
}

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
		watching := clienttest.OpenClient(t, mini.Client(), holdfast.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		m := monitor(t, watching, 15*time.Second, 10*time.Second)

		time.Sleep(4 * time.Second)
		l := clienttest.Grab(t, c.Mutex("mine"))
		time.Sleep(5 * time.Second) // 9
		holder := javaHolder()
		rdb.HSet(t.Context(), "java", holder, 1)
		must(t, errOf(c.Semaphore("count").TrySetPermits(t.Context(), 1)))
		passing := background(t, func(ctx context.Context) { // each holder has it for too short a time
			for ctx.Err() == nil {
				next := clienttest.Grab(t, c.Mutex("passing"))
				rdb.HSet(t.Context(), "passing in Java", javaHolder(), 1)
				time.Sleep(12 * time.Second)
				rdb.Del(t.Context(), "passing in Java")
				clienttest.GiveBack(t, next)
			}
		})
		short := clienttest.Grab(t, c.Mutex("short"))
		time.Sleep(12 * time.Second) // 21
		clienttest.GiveBack(t, short)
		time.Sleep(14 * time.Second) // 35
		clienttest.GiveBack(t, l)
		time.Sleep(10 * time.Second) // 45
		rdb.Del(t.Context(), "java")
		time.Sleep(10 * time.Second) // 55
		m.end(t,
			fmt.Sprintf("20s mine mutex %s 16s true", l.Owner()),
			fmt.Sprintf("30s java mutex %s 20s false", holder),
			fmt.Sprintf("30s mine mutex %s 26s true", l.Owner()),
			fmt.Sprintf("40s java mutex %s 30s false", holder),
		)
		passing()
		n := int64(0)
		pointsOf(t, reader, func(metric string, _ attribute.Set, more int64) {
			if metric == "holdfast.lock.long_held" {
				n += more
			}
		})
		world.Equal(t, n, 4, "holdfast.lock.long_held is %d, want 4")
	})
}

// Of several permits the Monitor reports the permit that it has seen for longest. That may be a
// renewed permit or a permit of Java, but no permit that is given back in time.
func TestMonitorPermits(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		permits := c.PermitSemaphore("p")
		must(t, errOf(permits.TrySetPermits(t.Context(), 5)))
		java := redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: "sixteen bytes 01"}
		time.Sleep(time.Millisecond)
		first := clienttest.Grab(t, permits.Locker(1))
		m := monitor(t, c, 12*time.Second, 10*time.Second)
		time.Sleep(5 * time.Second)
		for range 4 { // each for too short a time to be reported
			second := clienttest.Grab(t, permits.Locker(3))
			time.Sleep(4 * time.Second)
			clienttest.GiveBack(t, second)
			time.Sleep(time.Second)
		}
		clienttest.GiveBack(t, first) // 25
		rdb.ZAdd(t.Context(), "{p}:timeout", java)
		time.Sleep(30 * time.Second) // 55
		m.end(t,
			fmt.Sprintf("20s p permits %s 20s false", permits.IDs(first)[0]),
			fmt.Sprintf("50s p permits %x 20s false", java.Member),
		)
	})
}

// Nobody has a number in quarantine, and a process is a member of Shards for as long as it lives, so the Monitor reports
// neither.
func TestMonitorLeavesOutQuarantineAndMembers(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		gone := known(t, mini, "gone")
		_, err := gone.Slots("s", 2, slots.Quarantine(time.Hour)).TryAcquire(t.Context())
		must(t, err)
		must(t, gone.Close())
		defer background(t, func(ctx context.Context) {
			_ = c.Shards("members", 1).Run(ctx, func(ctx context.Context, _ *shards.Shard) error {
				<-ctx.Done()
				return nil
			})
		})()
		time.Sleep(time.Minute)
		m := monitor(t, c, 12*time.Second, 10*time.Second)
		time.Sleep(30 * time.Second)
		m.end(t)
		_, err = c.Slots("s", 2).ForceRelease(t.Context(), 0)
		must(t, err)
	})
}

// Of several readers the Monitor reports the reader that it has seen for longest. Of a writer it knows the age.
func TestMonitorReadWriteLock(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		rw := c.RWMutex("rw")
		time.Sleep(time.Millisecond)
		first := clienttest.Grab(t, rw.RLocker())
		m := monitor(t, c, 12*time.Second, 10*time.Second)
		time.Sleep(5 * time.Second)
		second := clienttest.Grab(t, rw.RLocker())
		time.Sleep(16 * time.Second) // 21
		clienttest.GiveBack(t, first, second)
		writer := clienttest.Grab(t, rw)
		time.Sleep(24 * time.Second) // 45
		m.end(t,
			fmt.Sprintf("20s rw rwlock %s 20s false", first.Owner()),
			fmt.Sprintf("40s rw rwlock %s 19s true", writer.Owner()),
		)
		clienttest.GiveBack(t, writer)
	})
}

// The Monitor does not forget a hold that it could not look at for a while.
func TestMonitorGoesOnAfterAnOutage(t *testing.T) {
	unreachable(t, func(t *testing.T, c *holdfast.Client, mini *redistest.MiniServer, net *redistest.FaultProxy) {
		rdb, holder := mini.Client(), javaHolder()
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

// A Monitor that may not look at one name forgets the holds of other names when they end: a holder that comes again and
// again is not reported as if it had stayed.
func TestMonitorForgetsBesideWhatItMayNotLookAt(t *testing.T) {
	unreachable(t, func(t *testing.T, c *holdfast.Client, mini *redistest.MiniServer, net *redistest.FaultProxy) {
		rdb, holder := mini.Client(), javaHolder()
		net.OnCommand(func(c redistest.Command) redistest.Fault {
			if strings.HasPrefix(c.Name, "EVAL") && slices.Contains(c.Args, "secret") {
				return redistest.ReplyError("NOPERM No permissions to access a key")
			}
			return redistest.Pass
		})
		rdb.HSet(t.Context(), "secret", javaHolder(), 1)
		m := monitor(t, c, 25*time.Second, 10*time.Second)
		time.Sleep(5 * time.Second)
		for range 2 { // each for too short a time to be reported
			rdb.HSet(t.Context(), "java", holder, 1)
			time.Sleep(10 * time.Second)
			rdb.Del(t.Context(), "java")
			time.Sleep(20 * time.Second)
		}
		m.end(t)
	})
}

const dayOfTokens = 24 * time.Hour

func TestTokensAreKeptForAsLongAsTheClientSays(t *testing.T) {
	for kind, locker := range lockers {
		if kind == "rwlock.read" {
			continue // it has no token
		}
		t.Run(kind, func(t *testing.T) {
			onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, usual *holdfast.Client) {
				short := clienttest.OpenClient(t, rdb, holdfast.WithTokenLife(dayOfTokens))
				forever := clienttest.OpenClient(t, rdb, holdfast.WithTokenLife(dayOfTokens), holdfast.WithDefaults(holdfast.JavaTokens()))
				for _, step := range []struct {
					of   *holdfast.Client
					want time.Duration
				}{{short, dayOfTokens}, {usual, 7 * 24 * time.Hour}, {forever, -1}} {
					rdb.Del(t.Context(), "redisson_lock_token:{x}")
					clienttest.GiveBack(t, clienttest.Grab(t, locker(step.of, "x")))
					if left := rdb.PTTL(t.Context(), "redisson_lock_token:{x}").Val(); left != step.want && left.Round(time.Second) != step.want {
						t.Errorf("the token is kept for %v, want %v", left, step.want)
					}
				}
			})
		})
	}
}

func TestAClientSeesSinceWhenItsOwnTokensAreHeld(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, usual *holdfast.Client) {
		c := clienttest.OpenClient(t, rdb, holdfast.WithTokenLife(dayOfTokens))
		began := time.Now()
		l := clienttest.Grab(t, c.Mutex("x"))
		time.Sleep(10 * time.Second)
		if since := inspected(t, c, "x").HeldSince; since.Sub(began).Abs() > time.Second {
			t.Errorf("held since %v, want %v", since, began)
		}
		if since := inspected(t, usual, "x").HeldSince; !since.IsZero() {
			t.Errorf("held since %v for a Client that keeps tokens longer, want not known", since)
		}

		// A token that was lost is made anew for as long.
		owner, err := l.Detach(t.Context())
		must(t, err)
		rdb.Del(t.Context(), "redisson_lock_token:{x}")
		l, err = c.Mutex("x").Attach(t.Context(), owner)
		must(t, err)
		if left := rdb.PTTL(t.Context(), "redisson_lock_token:{x}").Val(); left.Round(time.Second) != dayOfTokens {
			t.Errorf("the new token is kept for %v", left)
		}
		clienttest.GiveBack(t, l)
	})
}

func TestInspect_Slots(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		const size = 3
		a, b := known(t, mini, "pod-1"), known(t, mini, "pod-2")
		wantKind(t, inspected(t, c, "{b}x"), holdfast.KindFree, 0)
		zero, err := a.Slots("{b}x", size).TryAcquire(t.Context())
		must(t, err)
		one, err := b.Slots("{b}x", size, slots.Quarantine(time.Hour), slots.Lease(holdfast.Renewed(10*time.Second))).TryAcquire(t.Context())
		must(t, err)
		two, err := a.Slots("{b}x", size).TryAcquire(t.Context())
		must(t, err)
		defer background(t, func(ctx context.Context) { _, _ = c.Slots("{b}x", size).Acquire(ctx) })()
		time.Sleep(2 * time.Second)

		i := inspected(t, c, "{b}x")
		if wantKind(t, i, holdfast.KindSlots, 3); i.Value != 0 || i.Taken != 3 || i.All != size || i.Waiters != 1 || len(i.Queue) != 1 {
			t.Errorf("%v", i)
		}
		for n, slot := range []slots.Slot{zero, one, two} {
			if h := i.Holders[n]; h.Number != n || h.Owner != slot.Owner() || h.Who != fmt.Sprint("pod-", 1+n%2) || h.Quarantined {
				t.Errorf("%d: %v, %q", n, h, h.Who)
			}
		}
		must(t, b.Close()) // its number is not renewed any more
		time.Sleep(15 * time.Second)
		must(t, zero.Release(t.Context()))
		time.Sleep(2 * time.Second) // c has that
		all := allOf(t, c, "{b}*")
		if i = all["{b}x"]; len(all) != 1 || len(i.Holders) != 3 {
			t.Fatalf("%v", all)
		}
		for n, quarantined := range []bool{false, true, false} {
			if h := i.Holders[n]; h.Number != n || h.Quarantined != quarantined {
				t.Errorf("%d: %v", n, h)
			}
		}
		if left := i.Holders[1].Remaining; left < 59*time.Minute || left > time.Hour {
			t.Errorf("the quarantine ends in %v", left)
		}
		must(t, two.Release(t.Context()))
	})
}

// More numbers are taken than one call looks at.
func TestInspect_ManySlots(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		const n = 700
		back := float64(time.Now().Add(time.Minute).UnixMilli())
		for i := range n {
			number := 3 * i
			rdb.ZAdd(t.Context(), "holdfast_slots:{x}", redis.Z{Score: back, Member: fmt.Sprint(number)},
				redis.Z{Score: float64(int64(number)<<37 - 1<<53), Member: javaHolder()})
		}
		rdb.ZAdd(t.Context(), "holdfast_slots:{x}", redis.Z{Score: 1<<52 + 65536, Member: "size"})
		i := inspected(t, c, "x")
		if wantKind(t, i, holdfast.KindSlots, n); i.Value != 65536-n || i.Taken != n || i.All != 65536 {
			t.Errorf("%v", i)
		}
		for k, h := range i.Holders {
			if h.Number != 3*k || h.Remaining != time.Minute {
				t.Fatalf("%d: number %d, %v left", k, h.Number, h.Remaining)
			}
		}

		// Without the right to ZCOUNT it says the same; and of a permit whose lease is over, not that it has no end.
		rdb.ZAdd(t.Context(), "{p}:timeout", redis.Z{Score: float64(time.Now().UnixMilli() - 1), Member: "sixteen bytes 01"})
		rdb.Set(t.Context(), "p", 2, 0)
		mini.Deny("ZCOUNT")
		if i, p := inspected(t, c, "x"), inspected(t, c, "p"); i.Taken != n || i.Value != 65536-n || p.Remaining != 0 {
			t.Errorf("without ZCOUNT: %v; %v", i, p)
		}
		mini.Deny()
	})
}

// known returns a Client of the server that says who it is.
func known(t *testing.T, mini *redistest.MiniServer, who string) *holdfast.Client {
	t.Helper()
	return clienttest.OpenClient(t, mini.Client(), holdfast.WithIdentity(who))
}

// clientKeys returns the keys by which Clients say who they are.
func clientKeys(t *testing.T, rdb redis.UniversalClient) []string {
	t.Helper()
	keys, err := rdb.Keys(t.Context(), "holdfast_client:*").Result()
	must(t, err)
	return keys
}

func TestInspectSaysWho(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client, operator *holdfast.Client) {
		a, b := known(t, mini, "billing-7f9c/pid 12"), known(t, mini, "billing-x2x2/pid 9")
		l := clienttest.Grab(t, a.Mutex("x"))
		lease.Note(l.Context(t.Context()), "rebuilding index 7")
		stop := background(t, func(ctx context.Context) { _, _ = b.FairMutex("x").Lock(ctx) })
		time.Sleep(2 * time.Second)

		i := inspected(t, operator, "x")
		wantKind(t, i, holdfast.KindMutex, 1)
		if h := i.Holders[0]; h.Who != "billing-7f9c/pid 12" || h.Note != "rebuilding index 7" {
			t.Errorf("held by %+v", h)
		}
		if len(i.Queue) != 1 || i.Queue[0].Who != "billing-x2x2/pid 9" || i.At.Sub(i.Queue[0].Since).Round(time.Millisecond) != 2*time.Second {
			t.Errorf("waiting: %v, since %v", i.Queue, i.Queue[0].Since)
		}
		if text := i.String(); !strings.Contains(text, `"billing-7f9c/pid 12": "rebuilding index 7"`) || !strings.Contains(text, `"billing-x2x2/pid 9" first`) {
			t.Error(text)
		}
		report := holdfast.HeldLong{Inspection: i, Holder: i.Holders[0]}
		for _, text := range []string{fmt.Sprint(i), fmt.Sprintf("%+v", i), fmt.Sprintf("%+v", i.Holders), fmt.Sprintf("%+v", report)} {
			if strings.Contains(text, l.Owner().String()) || !strings.Contains(text, l.Owner().Short()) {
				t.Errorf("%s, want of the owner no more than %s", text, l.Owner().Short())
			}
		}
		for all, err := range operator.InspectAll(t.Context(), "") {
			if err != nil || all.Holders[0].Who != i.Holders[0].Who || all.Queue[0].Who != i.Queue[0].Who {
				t.Errorf("%v, %v", all, err)
			}
		}
		stop()

		clienttest.GiveBack(t, l)
		time.Sleep(time.Second)
		for _, key := range clientKeys(t, rdb) {
			if said := rdb.HGetAll(t.Context(), key).Val(); len(said) != 2 {
				t.Errorf("after the release a Client says %v", said)
			}
		}
		_ = a.Close()
		_ = b.Close()
		if keys := clientKeys(t, rdb); len(keys) != 0 {
			t.Errorf("after Close there is %q", keys)
		}
	})
}

// A lock that is held, nested, and waited for has the same bytes with an identity and without; and
// without one, there is no key more.
func TestAnIdentityLeavesTheKeysOfLocksAsTheyAre(t *testing.T) {
	ids := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	dump := func(options ...holdfast.Option) (all string, of []string) {
		redistest.Bubble(t, func(t *testing.T) {
			mini := redistest.Mini(t)
			c := clienttest.OpenClient(t, mini.Client(), options...)
			m, rw, waits := c.FairMutex("x"), c.RWMutex("y"), c.Mutex("x")
			l, read := clienttest.Grab(t, m), clienttest.Grab(t, rw.RLocker())
			defer clienttest.GiveBack(t, l, read)
			l.Note("at work")
			inner, err := m.Lock(l.Context(t.Context()))
			must(t, err)
			defer clienttest.GiveBack(t, inner)
			time.Sleep(15 * time.Second) // it is renewed
			stop := background(t, func(ctx context.Context) { _, _ = waits.Lock(ctx) })
			time.Sleep(time.Second)
			of = clientKeys(t, mini.Client())
			for _, key := range of {
				mini.Client().Del(t.Context(), key)
			}
			all = ids.ReplaceAllString(mini.Snapshot(), "<uuid>")
			stop()
		})
		return all, of
	}
	plain, none := dump()
	said, one := dump(holdfast.WithIdentity("pod"))
	if len(none) != 0 || len(one) != 1 {
		t.Errorf("keys of Clients: without an identity %q, with one %q", none, one)
	}
	if plain != said || !strings.Contains(plain, "<uuid>") {
		t.Errorf("without an identity\n%s\nwith one\n%s", plain, said)
	}
}

// Whatever becomes of a request that says who a Client is, a lock takes no longer for it, and in a while the
// Client has said it. Close is held up for no more than half a second.
func TestAnIdentityWhoseRequestsAreLost(t *testing.T) {
	for _, script := range []string{world.PresentRun, world.AbsentRun} {
		for what, fault := range map[string]redistest.Fault{
			"reply lost": redistest.CloseAfterExec, "request lost": redistest.DropBefore, "half a reply": redistest.HalfReply,
			"sent twice": redistest.Duplicate, "silence": redistest.Silence, "late": redistest.Delay(900 * time.Millisecond),
		} {
			play(t, script+"/"+what, func(t *testing.T, w *world.World) {
				p, operator := w.Process(holdfast.WithIdentity("pod")), w.Process()
				p.On(script, 1, fault)
				l := w.Lock(t.Context(), p.MyLock)
				if at := w.Now(); at > 10*time.Millisecond {
					t.Errorf("granted after %v", at)
				}
				l.Note("at work")
				w.At(20 * time.Second)
				if i := inspected(t, operator.Client, world.Name); i.Holders[0].Who != "pod" || i.Holders[0].Note != "at work" {
					t.Errorf("%v", i)
				}
				w.Release(l)
				begun := time.Now()
				must(t, p.Close())
				if took := time.Since(begun); took > 600*time.Millisecond {
					t.Errorf("Close took %v", took)
				}
				time.Sleep(2 * time.Second) // a write that was under way can come no more
			})
		}
	}
}

// A lock that a closed Client leaves behind can still be told apart, even if the Client could not say who
// it is before it closed.
func TestAnIdentityStaysWhileALockStaysBehind(t *testing.T) {
	for what, leave := range map[string]func(ctx context.Context, l *holdfast.Lease) error{
		"detached": func(ctx context.Context, l *holdfast.Lease) error { return errOf(l.Detach(ctx)) },
		"held":     func(context.Context, *holdfast.Lease) error { return nil },
		"held for a minute": func(ctx context.Context, l *holdfast.Lease) error {
			return errors.Join(l.AtLeast(ctx, time.Minute), l.Release(ctx))
		},
	} {
		for _, said := range []bool{true, false} {
			onlook(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client, operator *holdfast.Client) {
				proxy := mini.Proxy()
				var refused atomic.Bool
				refused.Store(said)
				proxy.OnCommand(func(c redistest.Command) redistest.Fault {
					if len(c.Args) > 2 && strings.HasPrefix(c.Args[2], "holdfast_client:") && !refused.Swap(true) {
						return redistest.ReplyError("ERR refused")
					}
					return redistest.Pass
				})
				c := holdfast.New(proxy.Client(t), holdfast.WithIdentity("pod"), holdfast.WithLogger(redistest.Watched()))
				l := clienttest.Grab(t, c.Mutex("x"))
				if said {
					time.Sleep(time.Second)
				}
				must(t, leave(t.Context(), l))
				synctest.Wait()
				must(t, c.Close())
				if i := inspected(t, operator, "x"); len(i.Holders) != 1 || i.Holders[0].Who != "pod" {
					t.Errorf("%s, said before: %v: %v", what, said, i)
				}
			})
		}
	}
}

// A Client that closes while it says who it is leaves nothing behind, though that comes after it.
func TestAnIdentityIsGoneThoughAWriteComesLate(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process(holdfast.WithIdentity("pod"))
		l := w.Lock(t.Context(), p.MyLock)
		l.Note("at work")
		w.At(time.Second)
		p.On(world.PresentRun, 1, redistest.Delay(900*time.Millisecond))
		w.Release(l) // the note is taken back
		w.At(1100 * time.Millisecond)
		must(t, p.Close())
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			for _, key := range clientKeys(t, w.RDB) {
				if said := w.RDB.HGetAll(t.Context(), key).Val(); said["who"] != "" {
					t.Errorf("it is closed, and says %v", said)
				}
			}
		}
		if keys := clientKeys(t, w.RDB); len(keys) != 0 {
			t.Errorf("two seconds after Close there is %q", keys)
		}
	})
}

// An inspection waits for a second at the most to hear who holds, and is right without.
func TestInspectDoesNotWaitForIdentities(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, operator := w.Process(holdfast.WithIdentity("pod")), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		w.At(time.Second)
		operator.Always(world.WhoRun, redistest.Silence)
		i := inspected(t, operator.Client, world.Name)
		if i.Holders[0].Who != "" || i.Holders[0].Owner != l.Owner() || w.Now() > 2100*time.Millisecond {
			t.Errorf("after %v: %v", w.Now(), i)
		}
		operator.Each(nil)
		if n := operator.Runs(world.WhoRun); n == 0 {
			t.Error("it has not asked")
		}
		if i := inspected(t, operator.Client, world.Name); i.Holders[0].Who != "pod" {
			t.Errorf("%v", i)
		}
		w.Release(l)
		before := operator.Runs(world.WhoRun)
		inspected(t, operator.Client, world.Name)
		if n := operator.Runs(world.WhoRun); n != before {
			t.Error("it asks who holds what nobody holds")
		}
	})
}

// In a cluster the identities of all holders are read by one request, wherever their locks are.
func TestIdentitiesInACluster(t *testing.T) {
	cluster := redistest.Cluster(t, 3, 0)
	ctx := clienttest.Generous(t)
	operator := clienttest.OpenClient(t, cluster.Client(t))
	want := make(map[string]string)
	for _, who := range []string{"pod-1", "pod-2"} {
		c := clienttest.OpenClient(t, cluster.Client(t), holdfast.WithIdentity(who))
		for _, name := range []string{"a", "b", "c", "{d}x", "e}f"} {
			l := clienttest.Grab(t, c.FairMutex(name+who))
			l.Note(name)
			want[name+who] = who + " " + name
			defer clienttest.GiveBack(t, l)
		}
	}
	redistest.Eventually(t, 20*time.Second, "all say who they are", func() error {
		found := make(map[string]string)
		for i, err := range operator.InspectAll(ctx, "") {
			if err != nil {
				return err
			}
			for _, h := range i.Holders {
				found[i.Name] += h.Who + " " + h.Note
			}
		}
		if !maps.Equal(found, want) {
			return fmt.Errorf("%q, want %q", found, want)
		}
		return nil
	})
}

// A Client that only holds a lock, or only waits, goes on saying who it is, also when Redis has lost that.
func TestAnIdentityOutlivesItsKey(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client, operator *holdfast.Client) {
		holder, waiter := known(t, mini, "holds"), known(t, mini, "waits")
		l := clienttest.Grab(t, holder.Mutex("x"))
		stop := background(t, func(ctx context.Context) { _, _ = waiter.Mutex("x").Lock(ctx) })
		for range 2 {
			time.Sleep(2 * time.Minute)
			rdb.Del(t.Context(), clientKeys(t, rdb)...)
			time.Sleep(time.Minute + time.Second)
			if i := inspected(t, operator, "x"); i.Holders[0].Who != "holds" || len(i.Queue) != 1 || i.Queue[0].Who != "waits" {
				t.Errorf("%v", i)
			}
		}
		stop()
		clienttest.GiveBack(t, l)
	})
}

// A lease that is passed on within a process does not keep the note of the lease before it, nor does one
// that goes on after a nested lease.
func TestANoteEndsWithItsLease(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, operator *holdfast.Client) {
		c := known(t, mini, "pod")
		note := func() string {
			time.Sleep(time.Second)
			return inspected(t, operator, "x").Holders[0].Note
		}
		l := clienttest.Grab(t, c.Mutex("x"))
		inner, err := c.Mutex("x").Lock(l.Context(t.Context()))
		must(t, err)
		inner.Note("inner")
		world.Equal(t, note(), "inner", "%q")
		clienttest.GiveBack(t, inner)
		world.Equal(t, note(), "", "after the nested lease: %q")
		l.Note("outer")
		l.Note(strings.Repeat("x", 1000))
		world.Equal(t, note(), strings.Repeat("x", 256), "%q")
		l.Note("")
		world.Equal(t, note(), "", "taken back: %q")
		clienttest.GiveBack(t, l)
		l.Note("too late")
		second := clienttest.Grab(t, c.Mutex("x"))
		world.Equal(t, note(), "", "the next lease: %q")
		clienttest.GiveBack(t, second)
		(*holdfast.Lease)(nil).Note("nobody's")
		lease.Note(t.Context(), "nobody's")
	})
}
