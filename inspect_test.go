// Inspect tells who holds a name: for each kind before, during, nested and after a hold, and for
// names that are no synchronizer.

package holdfast_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// onlook runs scene with a Client of an embedded server, on virtual time.
func onlook(t *testing.T, scene func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		mini := redistest.Mini(t)
		c := holdfast.New(mini.Client())
		defer c.Close()
		scene(t, mini, mini.Client(), c)
	})
}

// inspected inspects a name or fails the test.
func inspected(t *testing.T, c *holdfast.Client, name string) holdfast.Inspection {
	t.Helper()
	i, err := c.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if i.Name != name {
		t.Errorf("it is about %q, want %q", i.Name, name)
	}
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
		if i.Waiters != 0 {
			t.Errorf("%d waiters", i.Waiters)
		}

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
		w.Release(l)
		wantKind(t, inspected(t, other.Client, world.Name), holdfast.KindFree, 0)
	})
}

func TestInspectionsDoNotTellOwners(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		l, err := c.RWMutex("x").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release(t.Context())
		i := inspected(t, c, "x")
		report := holdfast.HeldLong{Inspection: i, Holder: i.Holders[0]}
		for _, text := range []string{fmt.Sprint(i), fmt.Sprintf("%+v", i), fmt.Sprintf("%+v", i.Holders), fmt.Sprintf("%+v", report)} {
			if strings.Contains(text, l.Owner().String()) || !strings.Contains(text, l.Owner().Short()) {
				t.Errorf("%s, with the owner %s", text, l.Owner().Short())
			}
		}
	})
}

func TestInspectFairMutex(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		m := c.FairMutex("x")
		l, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantKind(t, inspected(t, c, "x"), holdfast.KindMutex, 1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := m.Lock(ctx)
			done <- err
		}()
		time.Sleep(3 * time.Second)
		i := inspected(t, c, "x")
		wantKind(t, i, holdfast.KindMutex, 1)
		if i.Waiters != 1 || i.At.Sub(i.HeldSince) != 3*time.Second {
			t.Errorf("%v", i)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(time.Second) // the waiter leaves the queue
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		wantKind(t, inspected(t, c, "x"), holdfast.KindFree, 0)
	})
}

// A hold that another process attaches began with its first grant.
func TestInspectAttached(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		l, err := c.Mutex("x").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		owner, err := l.Detach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		other := holdfast.New(mini.Client())
		defer other.Close()
		attached, err := other.Mutex("x").Attach(t.Context(), owner)
		if err != nil {
			t.Fatal(err)
		}
		defer attached.Release(t.Context())
		i := inspected(t, c, "x")
		if wantKind(t, i, holdfast.KindMutex, 1); i.Holders[0].Owner != attached.Owner() || i.At.Sub(i.HeldSince) != 5*time.Second {
			t.Errorf("%v", i)
		}
	})
}

// After a hand-over to a waiter, Inspect finds the lock held, and its token is there already.
func TestInspectFairMutexHandedOver(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
		l, err := c.FairMutex("x").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rdb.HSet(t.Context(), "x", l.Owner().String(), 0)
		i := inspected(t, c, "x")
		wantKind(t, i, holdfast.KindMutex, 1)
		if i.Holders[0].Count != 1 || i.HeldSince.IsZero() {
			t.Errorf("%v since %v", i, i.HeldSince)
		}
	})
}

func TestInspectRWMutex(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		m := c.RWMutex("x", holdfast.Renewed(9*time.Second))
		writer, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		i := inspected(t, c, "x")
		wantKind(t, i, holdfast.KindRWLock, 1)
		if h := i.Holders[0]; h.Owner != writer.Owner() || !h.Write || h.Count != 1 || i.At.Sub(i.HeldSince) != 2*time.Second || i.Waiters != 0 {
			t.Errorf("%v, %d waiting", i, i.Waiters)
		}
		waiting := make(chan *holdfast.Lease)
		go func() {
			l, _ := m.Lock(t.Context())
			waiting <- l
		}()
		reader, err := m.RLock(writer.Context(t.Context())) // a downgrade
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		i = inspected(t, c, "x")
		wantKind(t, i, holdfast.KindRWLock, 2)
		if i.Waiters != 1 || i.At.Sub(i.HeldSince) != 3*time.Second {
			t.Errorf("%v", i)
		}
		if err := writer.Release(t.Context()); err != nil {
			t.Error(err)
		}
		i = inspected(t, c, "x")
		wantKind(t, i, holdfast.KindRWLock, 1)
		if h := i.Holders[0]; h.Owner != reader.Owner() || h.Write || !i.HeldSince.IsZero() {
			t.Errorf("%v since %v", i, i.HeldSince)
		}
		world.Within(t, "remaining", i.Holders[0].Remaining, 5*time.Second, 9*time.Second)
		if err := reader.Release(t.Context()); err != nil {
			t.Error(err)
		}
		second := <-waiting
		i = inspected(t, c, "x")
		if wantKind(t, i, holdfast.KindRWLock, 1); i.Holders[0].Owner != second.Owner() || i.Waiters > 0 {
			t.Errorf("%v", i)
		}
		if err := second.Release(t.Context()); err != nil {
			t.Error(err)
		}
		wantKind(t, inspected(t, c, "x"), holdfast.KindFree, 0)
	})
}

// A reader with an ended lease does not hold, though other readers keep its field in Redis.
func TestInspectLeavesOutZombies(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		lives, err := c.RWMutex("x", holdfast.Renewed(time.Minute)).RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		died := holdfast.New(mini.Client())
		if _, err := died.RWMutex("x", holdfast.Fixed(5*time.Second)).RLock(t.Context()); err != nil {
			t.Fatal(err)
		}
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
			if err != nil {
				t.Fatal(err)
			}
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
		l, err := c.Mutex("x").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
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

// A token may be ahead of the clock because the clock was set back. Such a token tells no time,
// even when the clock has come that far.
func TestInspectAfterTheClockWasSetBack(t *testing.T) {
	for _, life := range []time.Duration{7 * 24 * time.Hour, time.Hour} {
		onlook(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client, c *holdfast.Client) {
			ahead := time.Now().Add(10 * time.Second)
			rdb.Set(t.Context(), "redisson_lock_token:{x}", ahead.UnixMicro(), life)
			l, err := c.Mutex("x").Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer l.Release(t.Context())
			for range 4 {
				if i := inspected(t, c, "x"); !i.HeldSince.IsZero() {
					t.Errorf("at %v: held since %v, want not known", i.At, i.HeldSince)
				}
				time.Sleep(5 * time.Second)
			}
		})
	}
}

// Inspect tells foreign keys apart where it can, and leaves them as they are.
func TestInspectWhatIsForeign(t *testing.T) {
	server := redistest.Server(t)
	for what, rdb := range map[string]func(*testing.T) *redis.Client{
		"embedded": func(t *testing.T) *redis.Client { return redistest.Mini(t).Client() },
		"real":     func(t *testing.T) *redis.Client { return server.Client(t) },
	} {
		t.Run(what, func(t *testing.T) {
			rdb, ctx := rdb(t), t.Context()
			c := holdfast.New(rdb)
			defer c.Close()
			foreign(t, rdb)
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
			var all []string
			for i, err := range c.InspectAll(ctx, "") {
				if err != nil {
					t.Error(err)
				}
				all = append(all, i.Name)
			}
			if len(all) != 2 {
				t.Errorf("found %q, want l and n", all)
			}
			if after := redistest.Snapshot(t, rdb); after != before {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
		})
	}
}

// foreign writes keys that other programs may keep, a counter n and a lock l.
func foreign(t *testing.T, rdb *redis.Client) {
	t.Helper()
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
	if _, err := p.Exec(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestInspectRefuses(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		for _, name := range []string{"", "redisson_lock_token:{a}", "holdfast_x"} {
			_, err := c.Inspect(t.Context(), name)
			world.WantErr(t, err, holdfast.ErrBadArgument)
		}
		mini.FlushAll()
		_, err := holdfast.New(nil).Inspect(t.Context(), "x")
		world.WantErr(t, err, holdfast.ErrBadArgument)
		c.Close()
		_, err = c.Inspect(t.Context(), "x")
		world.WantErr(t, err, holdfast.ErrClosed)
		for _, err := range c.InspectAll(t.Context(), "") {
			world.WantErr(t, err, holdfast.ErrClosed)
		}
	})
}

func TestInspectMapsNames(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, _ *holdfast.Client) {
		c := holdfast.New(mini.Client(), holdfast.WithNameMapper(func(name string) string { return "app:" + name }))
		defer c.Close()
		if _, err := c.Mutex("x").Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantKind(t, inspected(t, c, "x"), holdfast.KindMutex, 1)
		for i := range c.InspectAll(t.Context(), "app:*") {
			if i.Name != "app:x" {
				t.Errorf("found %q, want it as it stands in Redis", i.Name)
			}
		}
	})
}

func TestInspectDenied(t *testing.T) {
	server := redistest.Server(t)
	ctx := t.Context()
	server.Admin().HSet(ctx, "mine:x", javaHolder(), 1)
	server.Admin().HSet(ctx, "other", javaHolder(), 1)
	as := func(user string, rules ...any) *holdfast.Client {
		args := append([]any{"acl", "setuser", user, "on", ">" + user}, rules...)
		if err := server.Admin().Do(ctx, args...).Err(); err != nil {
			t.Fatal(err)
		}
		return clienttest.OpenClient(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = user, user }))
	}

	narrow := as("narrow", "~mine:*", "+@all")
	wantKind(t, inspected(t, narrow, "mine:x"), holdfast.KindMutex, 1) // without the keys beside it
	_, err := narrow.Inspect(ctx, "other")
	world.WantErr(t, err, holdfast.ErrDenied)
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
	err = noscan.Monitor(ctx, holdfast.MonitorOptions{Threshold: time.Second})
	world.WantErr(t, err, holdfast.ErrDenied)
}

// Inspect tells all permits that are taken, however many calls that takes, and no permit with an
// ended lease.
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
	if err := errors.Join(rdb.ZAdd(t.Context(), "{many}:timeout", ids...).Err(), rdb.Set(t.Context(), "many", 7, 0).Err()); err != nil {
		t.Fatal(err)
	}
	i := inspected(t, c, "many")
	if wantKind(t, i, holdfast.KindPermits, taken); i.Taken != taken || i.Value != 7+over {
		t.Errorf("%d free, %d taken, want %d and %d", i.Value, i.Taken, 7+over, taken)
	}
	told := make(map[string]bool)
	for _, h := range i.Holders {
		told[h.Permit] = true
	}
	if len(told) != taken {
		t.Errorf("%d different permits, want %d", len(told), taken)
	}
}
