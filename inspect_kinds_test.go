// Inspect knows elections, keys of a Once, barriers, semaphores and the queues of locks.

package holdfast_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/once"
)

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
		if err != nil {
			t.Error(err)
		}
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
		defer a.Close()
		defer b.Close()
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

func TestInspectWaitersOfARWMutex(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		reader, writer := known(t, mini, "reads"), known(t, mini, "writes")
		defer reader.Close()
		defer writer.Close()
		l := clienttest.Grab(t, c.RWMutex("x"))
		defer background(t, func(ctx context.Context) { _, _ = reader.RWMutex("x").RLock(ctx) })()
		time.Sleep(time.Second)
		defer background(t, func(ctx context.Context) { _, _ = writer.RWMutex("x").Lock(ctx) })()
		time.Sleep(time.Second)
		i := inspected(t, c, "x")
		if wantKind(t, i, holdfast.KindRWLock, 1); len(i.Queue) != 2 || i.Waiters != 2 {
			t.Fatalf("%v: %v", i, i.Queue)
		}
		first, second := i.Queue[0], i.Queue[1]
		if first.Who != "reads" || first.Write || second.Who != "writes" || !second.Write || i.At.Sub(first.Since).Round(10*time.Millisecond) != 2*time.Second {
			t.Errorf("%v since %v", i.Queue, first.Since)
		}
		defer clienttest.GiveBack(t, l)
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
