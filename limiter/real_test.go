// These tests run on real servers.

package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/limiter"
)

// A limit counts for both of two Clients on one server, behind Sentinel and on a cluster, whatever the braces of its
// name; its keys are in all slots.
func TestTopologies(t *testing.T) {
	for topology, open := range map[string]func(t *testing.T) func() redis.UniversalClient{
		"server": func(t *testing.T) func() redis.UniversalClient {
			s := redistest.Server(t)
			return func() redis.UniversalClient { return s.Client(t) }
		},
		"sentinel": func(t *testing.T) func() redis.UniversalClient {
			s := redistest.Sentinel(t)
			return func() redis.UniversalClient { return s.Client(t) }
		},
		"cluster": func(t *testing.T) func() redis.UniversalClient {
			s := redistest.Cluster(t, 3, 0)
			return func() redis.UniversalClient { return s.Client(t) }
		},
	} {
		t.Run(topology, func(t *testing.T) {
			dial := open(t)
			a, b := clienttest.OpenClient(t, dial()), clienttest.OpenClient(t, dial())
			for _, name := range []string{"orders", "{user7}:cart", "a}b", "a{", "x{}{t}"} {
				conforms(t, a.Limiter(name, limiter.Rate(100, time.Hour)), b.Limiter(name, limiter.Rate(100, time.Hour)))
			}
		})
	}
}

// conforms uses two values of one limiter.
func conforms(t *testing.T, a, b *limiter.Limiter) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", a.Name(), err)
		}
	}
	remain := func(l *limiter.Limiter, n, want int) {
		t.Helper()
		if d, err := l.Allow(ctx, n); err != nil || !d.Allowed || d.Remaining != want {
			t.Errorf("%s: %+v, %v; want %d that remain", l.Name(), d, err, want)
		}
	}
	remain(a, 10, 90)
	must(b.Wait(ctx, 10))
	r, err := a.Reserve(ctx, 70)
	must(err)
	must(r.Cancel(ctx))
	remain(b, 1, 79)
	for i := range 20 {
		key := fmt.Sprint("key ", i)
		remain(a.For(key), 1, 99)
		remain(b.For(key), 1, 98)
	}
	short, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := a.Wait(short, 90); !errors.Is(err, holdfast.ErrBusy) {
		t.Errorf("%s: %v", a.Name(), err)
	}
	waiting := make(chan error)
	go func() { waiting <- b.Wait(ctx, 100) }() // 21 of them are taken, so for 756 s
	for d, err := a.Allow(ctx, 1); err != nil || d.Allowed; d, err = a.Allow(ctx, 1) {
		must(err)
	}
	must(a.Set(ctx, limiter.Rate(100_000, time.Second)))
	must(<-waiting)
}

// When memory is short, nothing can be taken, and what is refused changes nothing.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	client := clienttest.OpenClient(t, server.Client(t))
	l := client.Limiter("api", limiter.Rate(10, time.Hour))
	if err := server.Admin().ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Allow(t.Context(), 1); !errors.Is(err, holdfast.ErrOutOfMemory) {
		t.Errorf("Allow: %v", err)
	}
	if err := l.Set(t.Context(), limiter.Rate(10, time.Hour)); !errors.Is(err, holdfast.ErrOutOfMemory) {
		t.Errorf("Set: %v", err)
	}
}
