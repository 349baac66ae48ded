// InspectAll goes through thousands of names, on one server and on a cluster, while keys come and
// go.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestInspectAll(t *testing.T) {
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		server := redistest.Server(t)
		inspectThousands(t, server.Client(t), server.Client(t))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		set := redistest.Cluster(t, 3, 0)
		inspectThousands(t, set.Client(t), set.Client(t))
	})
}

// inspectThousands keeps thousands of locks standing. Meanwhile other locks come and go, and some
// foreign keys lie about.
func inspectThousands(t *testing.T, rdb, admin redis.UniversalClient) {
	const standing, foreign = 3000, 3000
	ctx := clienttest.Generous(t)
	c := clienttest.OpenClient(t, rdb)
	p := admin.Pipeline()
	for k := range standing {
		p.HSet(ctx, fmt.Sprint("standing:", k), javaHolder(), 1)
	}
	for k := range foreign {
		p.Set(ctx, fmt.Sprint("text:", k), "text", 0)
	}
	if _, err := p.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	mine, err := c.Mutex("mine").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}

	coming, stop := context.WithCancel(ctx)
	var traffic sync.WaitGroup
	for k := range 8 {
		traffic.Go(func() { comeAndGo(coming, admin, k) })
	}
	defer traffic.Wait()
	defer stop()

	for range 3 {
		found := make(map[string]int)
		for i, err := range c.InspectAll(ctx, "") {
			if err != nil {
				t.Fatal(err)
			}
			found[i.Name]++
			if i.Kind != holdfast.KindMutex && i.Kind != holdfast.KindCount {
				t.Errorf("found %v", i)
			}
			if i.Name == "mine" && (i.Holders[0].Owner != mine.Owner() || i.HeldSince.IsZero()) {
				t.Errorf("mine: %v", i)
			}
		}
		for k := range standing {
			if n := found[fmt.Sprint("standing:", k)]; n != 1 {
				t.Fatalf("standing:%d came %d times", k, n)
			}
		}
		if found["mine"] != 1 || found["text:1"] != 0 {
			t.Errorf("mine came %d times, text:1 %d times", found["mine"], found["text:1"])
		}
		for name, n := range found {
			if n != 1 {
				t.Errorf("%s came %d times", name, n)
			}
		}
	}
	stop()
	traffic.Wait()

	n := 0
	for _, err := range c.InspectAll(ctx, "standing:1?") {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != 10 {
		t.Errorf("%d names match the pattern, want 10", n)
	}
	for range c.InspectAll(ctx, "") {
		break // nothing goes on after the break
	}
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	n = 0
	for _, err := range c.InspectAll(cancelled, "") {
		if n++; n == 1 {
			cancel()
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("after its context's end: %v", err)
		}
	}
	if n != 2 {
		t.Errorf("%d steps, want one and the error", n)
	}
	if err := mine.Release(ctx); err != nil {
		t.Error(err)
	}
}

// comeAndGo makes keys come, go, and change their type.
func comeAndGo(ctx context.Context, rdb redis.UniversalClient, k int) {
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("passing:%d:%d", k, n%50)
		rdb.HSet(ctx, name, javaHolder(), 1)
		rdb.PExpire(ctx, name, time.Minute)
		rdb.Set(ctx, name, n, 0)
		rdb.Del(ctx, name)
		rdb.RPush(ctx, name, 1)
		rdb.Del(ctx, name)
	}
}

// While a slot moves, Inspect tells a name wherever the name stands. It leaves out the keys beside
// the name if they are on another server.
func TestInspectWhileASlotMoves(t *testing.T) {
	t.Parallel()
	set := redistest.Cluster(t, 3, 0)
	c := clienttest.OpenClient(t, set.Client(t))
	l := clienttest.Grab(t, c.Mutex("x"))
	move := set.OpenSlot("x")
	look := func(where string) {
		t.Helper()
		i, err := c.Inspect(clienttest.Generous(t), "x")
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if i.Kind != holdfast.KindMutex || len(i.Holders) != 1 || i.Holders[0].Owner != l.Owner() {
			t.Errorf("%s: %v", where, i)
		}
	}
	look("before its keys move")
	move.MoveKeys("redisson_lock_token:{x}")
	look("without its token")
	move.MoveKeys("x")
	look("on the new server")
	move.Finish()
	look("after the move")
	if i, err := c.Inspect(clienttest.Generous(t), "x"); err != nil || i.HeldSince.IsZero() {
		t.Errorf("after the move: held since %v, %v", i.HeldSince, err)
	}
	if err := l.Release(clienttest.Generous(t)); err != nil {
		t.Error(err)
	}
}
