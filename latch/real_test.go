// These tests run on real servers: a cluster, and missing rights.

package latch

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/enginetest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// The latch works on a cluster with sharded channels, whatever the braces of the name.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0)
	a, b := enginetest.New(t, c.Client(t)), enginetest.New(t, c.Client(t))
	for _, name := range []string{"orders", "{user7}:cart", "a}b", "a{", "x{}{t}"} {
		l := New(a, name, name)
		if set, err := l.TrySetCount(t.Context(), 1); !set || err != nil {
			t.Fatalf("%q: %v, %v", name, set, err)
		}
		waiting := make(chan error)
		go func() { waiting <- New(b, name, name).Wait(t.Context()) }()
		left, err := l.CountDown(t.Context())
		if err := errors.Join(err, <-waiting); left != 0 || err != nil {
			t.Errorf("%q: %d, %v", name, left, err)
		}
	}
}

func TestDenied(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	if err := server.Admin().Do(t.Context(), "ACL", "SETUSER", "u", "on", ">p", "~other", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	l := New(enginetest.New(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "u", "p" })), "l", "l")
	_, set := l.TrySetCount(t.Context(), 1)
	_, counted := l.CountDown(t.Context())
	_, count := l.Count(t.Context())
	_, deleted := l.Delete(t.Context())
	for i, err := range []error{set, counted, count, deleted, l.Wait(t.Context())} {
		if !errors.Is(err, errs.Denied) {
			t.Errorf("%d: %v, want one that matches %q", i, err, errs.Denied)
		}
	}
}
