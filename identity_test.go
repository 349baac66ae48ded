// An identity: who holds what, and who waits for it, as other processes see it.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/lease"
)

// known returns a Client of the server that says who it is.
func known(t *testing.T, mini *redistest.MiniServer, who string) *holdfast.Client {
	t.Helper()
	c := holdfast.New(mini.Client(), holdfast.WithIdentity(who))
	t.Cleanup(func() { _ = c.Close() })
	return c
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
		defer a.Close()
		defer b.Close()
		l := clienttest.Grab(t, a.Mutex("x"))
		lease.Note(l.Context(t.Context()), "rebuilding index 7")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { _, err := b.FairMutex("x").Lock(ctx); done <- err }()
		time.Sleep(2 * time.Second)

		i := inspected(t, operator, "x")
		wantKind(t, i, holdfast.KindMutex, 1)
		if h := i.Holders[0]; h.Who != "billing-7f9c/pid 12" || h.Note != "rebuilding index 7" {
			t.Errorf("held by %+v", h)
		}
		if len(i.Queue) != 1 || i.Queue[0].Who != "billing-x2x2/pid 9" || i.At.Sub(i.Queue[0].Since).Round(time.Millisecond) != 2*time.Second {
			t.Errorf("waiting: %v, since %v", i.Queue, i.Queue[0].Since)
		}
		if text := i.String(); !strings.Contains(text, `"billing-7f9c/pid 12": "rebuilding index 7"`) || !strings.Contains(text, `"billing-x2x2/pid 9" first`) ||
			!strings.Contains(text, a.ID()+"…:") {
			t.Error(text)
		}
		for all, err := range operator.InspectAll(t.Context(), "") {
			if err != nil || all.Holders[0].Who != i.Holders[0].Who || all.Queue[0].Who != i.Queue[0].Who {
				t.Errorf("%v, %v", all, err)
			}
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}

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
			c := holdfast.New(mini.Client(), options...)
			defer c.Close()
			m, rw, waits := c.FairMutex("x"), c.RWMutex("y"), c.Mutex("x")
			l, read := clienttest.Grab(t, m), clienttest.Grab(t, rw.RLocker())
			defer clienttest.GiveBack(t, l, read)
			l.Note("at work")
			inner, err := m.Lock(l.Context(t.Context()))
			must(t, err)
			defer clienttest.GiveBack(t, inner)
			time.Sleep(15 * time.Second) // it is renewed
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); _, _ = waits.Lock(ctx) }()
			time.Sleep(time.Second)
			of = clientKeys(t, mini.Client())
			for _, key := range of {
				mini.Client().Del(t.Context(), key)
			}
			all = ids.ReplaceAllString(mini.Snapshot(), "<uuid>")
			cancel()
			<-done
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

// The key of an identity may be refused, or hold something of another program: locks go on.
func TestLocksGoOnWithoutTheirIdentity(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client, operator *holdfast.Client) {
		c := known(t, mini, "pod")
		defer c.Close()
		l := clienttest.Grab(t, c.Mutex("x"))
		time.Sleep(time.Second)
		key := clientKeys(t, rdb)[0]
		rdb.Del(t.Context(), key)
		rdb.LPush(t.Context(), key, "another program's")
		for range 20 {
			time.Sleep(10 * time.Second)
			must(t, l.Err())
		}
		if i := inspected(t, operator, "x"); len(i.Holders) != 1 || i.Holders[0].Who != "" || i.Holders[0].Owner != l.Owner() {
			t.Errorf("%v", i)
		}
		clienttest.GiveBack(t, l)
		rdb.Del(t.Context(), key)
	})
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
				if !said {
					proxy.OnCommand(refuseOnce("holdfast_client:"))
				}
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

// refuseOnce returns a rule that refuses the first script whose key begins like that.
func refuseOnce(prefix string) func(redistest.Command) redistest.Fault {
	var refused atomic.Bool
	return func(c redistest.Command) redistest.Fault {
		if len(c.Args) > 2 && strings.HasPrefix(c.Args[2], prefix) && !refused.Swap(true) {
			return redistest.ReplyError("ERR refused")
		}
		return redistest.Pass
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
		operator.Each(func(s world.Sending) redistest.Fault {
			if s.Script == world.WhoRun {
				return redistest.Silence
			}
			return redistest.Pass
		})
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

// In a cluster the identities of all holders and waiters are read by one request, wherever their locks are.
func TestIdentitiesInACluster(t *testing.T) {
	cluster := redistest.Cluster(t, 3, 0)
	ctx := clienttest.Generous(t)
	operator := clienttest.OpenClient(t, cluster.Client(t))
	names := []string{"a", "b", "c", "{d}x", "e}f"}
	for _, who := range []string{"pod-1", "pod-2"} {
		c := clienttest.OpenClient(t, cluster.Client(t), holdfast.WithIdentity(who))
		for _, name := range names {
			l := clienttest.Grab(t, c.FairMutex(name+who))
			l.Note(name)
			defer clienttest.GiveBack(t, l)
		}
		election := c.Leader("lead")
		defer background(t, func(ctx context.Context) {
			_ = election.Run(ctx, func(ctx context.Context, _ *leader.Term) error { <-ctx.Done(); return nil })
		})()
		barrier := c.Barrier("{b}", 5)
		defer background(t, func(ctx context.Context) { _, _ = barrier.Await(ctx) })()
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
			for _, w := range i.Queue {
				found[i.Name] += ", " + w.Who
			}
		}
		for _, name := range names {
			for _, who := range []string{"pod-1", "pod-2"} {
				if got := found[name+who]; got != who+" "+name {
					return fmt.Errorf("%s: %q", name+who, got)
				}
			}
		}
		for name, either := range map[string][]string{"lead": {"pod-1 , pod-2", "pod-2 , pod-1"}, "{b}": {", pod-1, pod-2", ", pod-2, pod-1"}} {
			if !slices.Contains(either, found[name]) {
				return fmt.Errorf("%s: %q", name, found[name])
			}
		}
		return nil
	})
}

// A Client that only holds a lock, or only waits, goes on saying who it is, also when Redis has lost that.
func TestAnIdentityOutlivesItsKey(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client, operator *holdfast.Client) {
		holder, waiter := known(t, mini, "holds"), known(t, mini, "waits")
		defer holder.Close()
		defer waiter.Close()
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
		defer c.Close()
		note := func() string {
			time.Sleep(time.Second)
			return inspected(t, operator, "x").Holders[0].Note
		}
		l := clienttest.Grab(t, c.Mutex("x"))
		inner, err := c.Mutex("x").Lock(l.Context(t.Context()))
		must(t, err)
		inner.Note("inner")
		if got := note(); got != "inner" {
			t.Errorf("%q", got)
		}
		clienttest.GiveBack(t, inner)
		if got := note(); got != "" {
			t.Errorf("after the nested lease: %q", got)
		}
		l.Note("outer")
		l.Note(strings.Repeat("x", 1000))
		if got := note(); got != strings.Repeat("x", 256) {
			t.Errorf("%q", got)
		}
		l.Note("")
		if got := note(); got != "" {
			t.Errorf("taken back: %q", got)
		}
		clienttest.GiveBack(t, l)
		l.Note("too late")
		second := clienttest.Grab(t, c.Mutex("x"))
		if got := note(); got != "" {
			t.Errorf("the next lease: %q", got)
		}
		clienttest.GiveBack(t, second)
		(*holdfast.Lease)(nil).Note("nobody's")
		lease.Note(t.Context(), "nobody's")
	})
}

func TestClientID(t *testing.T) {
	onlook(t, func(t *testing.T, _ *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		l := clienttest.Grab(t, c.Mutex("x"))
		defer clienttest.GiveBack(t, l)
		if id := c.ID(); len(id) != 8 || !strings.HasPrefix(l.Owner().Short(), id+"…") {
			t.Errorf("%q, and the owner %s", id, l.Owner().Short())
		}
		if id := holdfast.New(nil).ID(); id != "" {
			t.Errorf("a Client that cannot be used is %q", id)
		}
	})
}
