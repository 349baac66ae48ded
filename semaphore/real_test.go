// These tests run on real servers: very many permits that are over, a cluster, missing rights.

package semaphore

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/test/enginetest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Each visit takes back a bounded part, so that the server never stands still for the others, and gets the
// permits that it asks for. Short runs use the full number too: a smaller number would not show the failure.
func TestHundredThousandExpiredPermits(t *testing.T) {
	const all = 100_000
	rdb := redistest.Server(t).Client(t)
	ctx := t.Context()
	pipe := rdb.Pipeline()
	pipe.Set(ctx, "s", 1, 0)
	for i := 1; i < all; i++ {
		pipe.ZAdd(ctx, "{s}:timeout", redis.Z{Score: float64(i), Member: fmt.Sprintf("%016d", i)})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	s := NewPermits(enginetest.New(t, rdb), "s", "s", hold.Defaults())
	if n, err := s.Available(ctx); n != all || err != nil {
		t.Fatalf("%d are free, %v; want %d", n, err, all)
	}
	for visit, left := 0, int64(all-1); left > 0; visit++ {
		l, err := s.TryAcquire(ctx, 1000)
		if err != nil {
			t.Fatalf("visit %d: %v", visit, err)
		}
		if err := l.Release(ctx); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Permits(ctx); n != all || err != nil {
			t.Fatalf("visit %d: %d in all, %v", visit, n, err)
		}
		before := left
		if left = rdb.ZCard(ctx, "{s}:timeout").Val(); before-left > 1000 || visit > all/1000 {
			t.Fatalf("visit %d took back %d, want at most 1000; %d are left", visit, before-left, left)
		}
	}
	if free := rdb.Get(ctx, "s").Val(); free != strconv.Itoa(all) {
		t.Errorf("%s are free, want %d", free, all)
	}
}

// The semaphores work on a cluster with sharded channels, whatever the braces of the name.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0)
	a, b := enginetest.New(t, c.Client(t)), enginetest.New(t, c.Client(t))
	ctx := t.Context()
	for _, name := range []string{"orders", "{user7}:cart", "cart:{user7}", "{t}{s}"} {
		s, p := New(a, name, name), NewPermits(a, name+"2", name+"2", hold.Defaults())
		_, set := s.TrySetPermits(ctx, 1)
		if err := errors.Join(set, s.Acquire(ctx, 1), p.SetPermits(ctx, 2)); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		waiting := make(chan error)
		go func() { waiting <- New(b, name, name).Acquire(ctx, 1) }()
		if err := errors.Join(s.Release(ctx, 1), <-waiting); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		l, err := p.Acquire(ctx, 2)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		released := l.Release(ctx)
		if n, err := p.Available(ctx); n != 2 || released != nil || err != nil {
			t.Errorf("%q: %d are free, %v, %v", name, n, released, err)
		}
	}
}

func TestDenied(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	rdb := server.Client(t)
	ctx := t.Context()
	if err := rdb.Do(ctx, "ACL", "SETUSER", "u", "on", ">p", "~other", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	e := enginetest.New(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "u", "p" }))
	s, p := New(e, "s", "s"), NewPermits(e, "p", "p", hold.Defaults())
	_, acquired := p.Acquire(ctx, 1)
	_, set := s.TrySetPermits(ctx, 1)
	_, free := s.Available(ctx)
	for i, err := range []error{
		s.Acquire(ctx, 1), s.TryAcquire(ctx, 1), s.Release(ctx, 1), s.AddPermits(ctx, 1), set, free,
		acquired, p.SetPermits(ctx, 1), p.ReleaseID(ctx, "00112233445566778899aabbccddeeff"),
	} {
		if !errors.Is(err, errs.Denied) {
			t.Errorf("%d: %v, want one that matches %q", i, err, errs.Denied)
		}
	}
	if keys := rdb.Keys(ctx, "*").Val(); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}
