// This test runs on a real server: very many permits that are over.

package semaphore

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

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
	redistest.Must(t, redistest.Err(pipe.Exec(ctx)))
	s := NewPermits(enginetest.New(t, rdb), "s", "s", hold.Defaults())
	if n, err := s.Available(ctx); n != all || err != nil {
		t.Fatalf("%d are free, %v; want %d", n, err, all)
	}
	for visit, left := 0, int64(all-1); left > 0; visit++ {
		l, err := s.TryAcquire(ctx, 1000)
		if err != nil {
			t.Fatalf("visit %d: %v", visit, err)
		}
		redistest.Must(t, l.Release(ctx))
		if n, err := s.Permits(ctx); n != all || err != nil {
			t.Fatalf("visit %d: %d in all, %v", visit, n, err)
		}
		before := left
		if left = rdb.ZCard(ctx, "{s}:timeout").Val(); before-left > 1000 || visit > all/1000 {
			t.Fatalf("visit %d took back %d, want at most 1000; %d are left", visit, before-left, left)
		}
	}
	redistest.Equal(t, rdb.Get(ctx, "s").Val(), strconv.Itoa(all), "%s are free, want %d", all)
}
